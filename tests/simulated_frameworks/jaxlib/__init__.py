"""What JAX starts its backends by."""

"""Measures what the operator costs a cluster. `python -m bench` prints a table."""

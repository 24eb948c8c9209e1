"""What runs beside users' containers and measures them."""

"""`kubectl gpumem` and the commands of this repository."""

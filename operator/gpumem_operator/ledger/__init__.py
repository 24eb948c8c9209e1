"""What pods are charged: one set of rules for admission, the running operator and files."""

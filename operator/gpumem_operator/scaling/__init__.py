"""How many replicas a workload should have: decisions over facts, without any I/O."""

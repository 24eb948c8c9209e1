"""What people and Kubernetes write: the two kinds, quantities, pods, and the chart's values."""

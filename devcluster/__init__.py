"""A real Kubernetes control plane on this machine, without root or containers.

    with devcluster.Cluster.start() as cluster:
        cluster.kubectl("get", "namespaces")

`python -m devcluster --help` shows the same as a command.
"""

from devcluster.controlplane import Cluster
from devcluster.failure import ClusterError

__all__ = ["Cluster", "ClusterError"]

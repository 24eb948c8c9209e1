"""A real node for a cluster of this package: kubelet, containerd and kube-proxy, as root.

    with Cluster.start() as cluster, Node.start(cluster) as node:
        node.import_image(archive)

Everything runs in namespaces of its own (processes, mounts, network), which the kernel takes away
with the node's first process: no container, mount, bridge or firewall rule can outlive it.
"""

from devcluster.node.node import Node
from devcluster.node.requirements import why_not

__all__ = ["Node", "why_not"]

"""A simulated GPU node: what a cluster's own components would have written about one.

The object carries the labels of NVIDIA's GPU feature discovery and the GPUs of its device plugin,
and its heartbeat is renewed. Nothing runs pods: they are scheduled to it and stay pending.
"""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from devcluster.controlplane import Cluster
from devcluster.failure import ClusterError
from devcluster.gpu_node import gpu_labels

HEARTBEAT_SECONDS = 10.0
_LEASES = "kube-node-lease"


class SimulatedGpuNode:
    """A node with `cards` GPUs of `mib_per_card`, each shared by `replicas` containers."""

    def __init__(
        self, cluster: Cluster, name: str, *, cards: int, mib_per_card: int, replicas: int = 1
    ) -> None:
        self._cluster = cluster
        self._name = name
        self._labels = gpu_labels(cards=cards, mib_per_card=mib_per_card, replicas=replicas)
        self._gpus = cards * replicas
        self._over = threading.Event()
        self._heartbeat = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Self:
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self._name, "labels": self._labels},
        }
        self._cluster.kubectl("apply", "-f", "-", input=json.dumps(node))
        status = json.dumps({"status": self._status()})
        self._cluster.kubectl("patch", "node", self._name, "--subresource=status", "-p", status)
        taints = ["taint", "node", self._name, "node.kubernetes.io/not-ready:NoSchedule-"]
        self._cluster.kubectl(*taints, check=False)
        self._renew()
        self._heartbeat.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._heartbeat.join()

    def _status(self) -> dict[str, Any]:
        amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(self._gpus)}
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "SimulatedNode",
            "message": "nothing runs here",
            "lastHeartbeatTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        return {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}

    def _renew(self) -> None:
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": _LEASES},
            "spec": {
                "holderIdentity": self._name,
                "leaseDurationSeconds": 40,
                "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            },
        }
        self._cluster.kubectl("apply", "-f", "-", input=json.dumps(lease))

    def _beat(self) -> None:
        while not self._over.wait(HEARTBEAT_SECONDS):
            try:
                self._renew()
            except ClusterError:
                # The cluster is being stopped, or restarts: the next beat tells.
                continue

"""The way to a leader that runs on this machine: the chart's Service, and a pod behind it."""

from __future__ import annotations

import json
from typing import Any

import yaml

from devcluster.container_status import container_status
from devcluster.controlplane import Cluster
from devcluster.failure import ClusterError
from devcluster.installation import CHART, Installation
from devcluster.pod_addresses import PodAddresses

NAME = "leader"
LEADER_ADDRESS = "198.51.100.7"
"""Of a range that is for documentation: nobody has it."""
LEADER_PORT = 9443
HEALTH_PORT = 8081


class LeaderPod:
    """The object that stands for the leader: no kubelet tells of it, so this does."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace

    def tell(self, *, ready: bool, restarts: int = 0) -> bool:
        """Have it say so; whether it does now."""
        patch = json.dumps({"status": _status(ready=ready, restarts=restarts)})
        where = ["-n", self._namespace, "--subresource=status", "-p", patch]
        return self._cluster.kubectl("patch", "pod", NAME, *where, check=False).returncode == 0


def serve_leader(installation: Installation, pods: PodAddresses, *, node: str) -> LeaderPod:
    """Make the chart's Service for reports lead to whoever leads. Raises ClusterError.

    The leader has no pod here. The object that stands for it has an address and is ready, as a
    kubelet would say; nobody runs it, and it stays ready until `LeaderPod.tell`. It is put on
    `node`, which has to be there: a pod of an unknown node is in no Service.
    """
    cluster, namespace = installation.cluster, installation.namespace
    service = _chart_service(installation)
    pod = _pod(service["spec"]["selector"], namespace, node)
    items = {"apiVersion": "v1", "kind": "List", "items": [service, pod]}
    cluster.kubectl("create", "-f", "-", input=json.dumps(items))
    where = ["-n", namespace]
    standing = LeaderPod(cluster, namespace)
    if not standing.tell(ready=True):
        raise ClusterError(f"The pod {namespace}/{NAME} could not be given a status.")
    pods.lead(LEADER_ADDRESS, LEADER_PORT, to=installation.report_ports)
    pods.lead(LEADER_ADDRESS, HEALTH_PORT, to=installation.controller_health_ports)
    until = "--for=jsonpath={.endpoints[0].addresses[0]}=" + LEADER_ADDRESS
    chosen = ["-l", f"kubernetes.io/service-name={installation.release}-report"]
    cluster.kubectl("wait", "endpointslices", *chosen, until, "--timeout=30s", *where)
    return standing


def _chart_service(installation: Installation) -> dict[str, Any]:
    """Left out of a release whose processes run outside of the cluster."""
    where = ["--namespace", installation.namespace, "--show-only", "templates/controller.yaml"]
    text = installation.cluster.helm("template", installation.release, CHART, *where).stdout
    name = f"{installation.release}-report"
    [service] = [
        one
        for one in yaml.safe_load_all(text)
        if one and (one["kind"], one["metadata"]["name"]) == ("Service", name)
    ]
    found: dict[str, Any] = service
    return found


def _pod(selector: dict[str, str], namespace: str, node: str) -> dict[str, Any]:
    ports = [
        {"name": "reports", "containerPort": LEADER_PORT},
        {"name": "health", "containerPort": HEALTH_PORT},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME, "namespace": namespace, "labels": dict(selector)},
        "spec": {
            "nodeName": node,
            # No kubelet renews the node, and the control plane evicts from a node that is lost.
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "controller", "image": "none", "ports": ports}],
        },
    }


def _status(*, ready: bool, restarts: int) -> dict[str, Any]:
    container = container_status({"name": "controller", "image": "none"})
    if not ready:
        container["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
    return {
        "phase": "Running",
        "podIP": LEADER_ADDRESS,
        "podIPs": [{"ip": LEADER_ADDRESS}],
        "conditions": [{"type": "Ready", "status": str(ready)}],
        "containerStatuses": [
            container | {"ready": ready, "started": ready, "restartCount": restarts}
        ],
    }

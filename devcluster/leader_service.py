"""The way to a leader that runs on this machine: the chart's Service, and a pod behind it."""

from __future__ import annotations

import json
from typing import Any

import yaml

from devcluster.container_status import container_status
from devcluster.installation import CHART, Installation
from devcluster.pod_addresses import PodAddresses

LEADER_ADDRESS = "198.51.100.7"
"""Of a range that is for documentation: nobody has it."""
LEADER_PORT = 9443
HEALTH_PORT = 8081


def serve_leader(installation: Installation, pods: PodAddresses, *, node: str) -> None:
    """Make the chart's Service for reports lead to whoever leads. Raises ClusterError.

    The leader has no pod here. The object that stands for it has an address and is ready, as a
    kubelet would say; nobody runs it. It is put on `node`, which has to be
    there: a pod of an unknown node is in no Service.
    """
    cluster, namespace = installation.cluster, installation.namespace
    service = _chart_service(installation)
    pod = _pod(service["spec"]["selector"], namespace, node)
    items = {"apiVersion": "v1", "kind": "List", "items": [service, pod]}
    cluster.kubectl("create", "-f", "-", input=json.dumps(items))
    where = ["-n", namespace]
    patch = json.dumps({"status": _STATUS})
    cluster.kubectl("patch", "pod", "leader", "--subresource=status", "-p", patch, *where)
    pods.lead(LEADER_ADDRESS, LEADER_PORT, to=installation.report_ports)
    pods.lead(LEADER_ADDRESS, HEALTH_PORT, to=installation.controller_health_ports)
    until = "--for=jsonpath={.endpoints[0].addresses[0]}=" + LEADER_ADDRESS
    chosen = ["-l", f"kubernetes.io/service-name={installation.release}-report"]
    cluster.kubectl("wait", "endpointslices", *chosen, until, "--timeout=30s", *where)


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
        "metadata": {"name": "leader", "namespace": namespace, "labels": dict(selector)},
        "spec": {
            "nodeName": node,
            # No kubelet renews the node, and the control plane evicts from a node that is lost.
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "controller", "image": "none", "ports": ports}],
        },
    }


_STATUS = {
    "phase": "Running",
    "podIP": LEADER_ADDRESS,
    "podIPs": [{"ip": LEADER_ADDRESS}],
    "conditions": [{"type": "Ready", "status": "True"}],
    "containerStatuses": [container_status({"name": "controller", "image": "none"})],
}

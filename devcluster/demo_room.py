"""How many pods of one's own a kept demo has room for: counted, as others are there already."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from devcluster.demo_stage import Stage
from gpumem_operator import names
from gpumem_operator.api.quantity import parse_bytes

Raw = Mapping[str, Any]
OWN_POD = "examples/demo/own-pod.yaml"
OWN_PODS = "{own_pods}"
"""Stands for the number in a text that is written before it is known."""
_NODE, _TENANT = "live-node", "research"
_FINISHED = ("Succeeded", "Failed")


def with_room(text: str, stage: Stage) -> str:
    """The text with the number, where it has a place for it."""
    return text.replace(OWN_PODS, str(_count(stage))) if OWN_PODS in text else text


def _count(stage: Stage) -> int:
    own = json.loads(
        stage.run("create", "--dry-run=client", "-f", OWN_POD, "-o", "json", show=False)
    )
    on_node = f"--field-selector=spec.nodeName={_NODE}"
    pods = stage.get("pods", "-A", on_node)["items"]
    return pods_that_fit(own, stage.get("node", _NODE), pods, stage.get("gmt", _TENANT))


def pods_that_fit(own: Raw, node: Raw, pods: Iterable[Raw], tenant: Raw) -> int:
    """On the node beside these pods, and within the tenant's quota."""
    asked = _asks(own)
    taken = [_asks(pod) for pod in pods if pod["status"].get("phase") not in _FINISHED]
    offered = node["status"]["allocatable"]
    fits = [
        (parse_bytes(offered[name]) - sum(one.get(name, 0) for one in taken)) // amount
        for name, amount in asked.items()
    ]
    left: int = parse_bytes(tenant["spec"]["quota"]["limit"]) - tenant["status"]["chargedBytes"]
    return max(0, min(*fits, left // asked[names.MEMORY_RESOURCE]))


def _asks(pod: Raw) -> dict[str, int]:
    """GPUs and bytes of GPU memory of all its containers."""
    sums: dict[str, int] = {}
    for container in pod["spec"]["containers"]:
        for name, amount in ((container.get("resources") or {}).get("limits") or {}).items():
            if name.startswith("nvidia.com/"):
                sums[name] = sums.get(name, 0) + parse_bytes(amount)
    return sums

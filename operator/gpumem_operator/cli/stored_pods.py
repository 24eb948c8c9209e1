"""Pods as their stored objects tell of them, in the form in which the leader does. Pure."""

from collections.abc import Mapping
from typing import Any

from gpumem_operator import names


def stored_pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a raw pod; what it holds is only known to the leader."""
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    return {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "node": spec.get("nodeName"),
        "policy": (metadata.get("labels") or {}).get(names.POLICY_LABEL),
        "usedBytes": None,
        "unknown": "NotAsked",
    }

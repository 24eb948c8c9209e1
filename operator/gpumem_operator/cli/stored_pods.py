"""Pods as their stored objects tell of them, in the form in which the leader does. Pure."""

from collections.abc import Mapping
from typing import Any

from gpumem_operator import names
from gpumem_operator.api.values import Values
from gpumem_operator.cli.declared_limits import as_believed, limits_of


def stored_pod(pod: Mapping[str, Any], *, unknown: str) -> dict[str, Any]:
    """The row of a raw pod; what it holds is only known to the leader: `unknown` is why it is not.

    The memory resource is taken for the usual one; the leader alone knows the chart's values.
    """
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    return {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "node": spec.get("nodeName"),
        "policy": (metadata.get("labels") or {}).get(names.POLICY_LABEL),
        "usedBytes": None,
        "unknown": unknown,
        "containers": limits_of(as_believed(pod), Values()),
    }

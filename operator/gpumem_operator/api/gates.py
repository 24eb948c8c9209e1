"""The scheduling gate that keeps a pod until its tenant has room for it."""

from collections.abc import Mapping
from typing import Any

from gpumem_operator import names


def is_gated(pod: Mapping[str, Any]) -> bool:
    """Whether a raw pod carries our gate; those of others do not matter."""
    gates = (pod.get("spec") or {}).get("schedulingGates") or ()
    return any(gate.get("name") == names.QUOTA_GATE for gate in gates)


def without_gate(pod: Mapping[str, Any], *, uid: str, version: str) -> dict[str, Any]:
    """The merge patch that takes our gate from a raw pod.

    The list is replaced as a whole, so nobody may have changed it meanwhile: `version` is the pod's
    resourceVersion.
    """
    gates = pod["spec"].get("schedulingGates") or ()
    others = [gate for gate in gates if gate.get("name") != names.QUOTA_GATE]
    return {
        "metadata": {"uid": uid, "resourceVersion": version},
        "spec": {"schedulingGates": others},
    }

"""MinimumEnforcerUnavailable: whether any node can hold limits by what a policy asks for.

The policy stays usable: its pods wait, as pods without a fitting node do, until a node can.
"""

from typing import Final

from gpumem_operator.admission.enforcer_needs import needed_enforcer
from gpumem_operator.api import conditions
from gpumem_operator.api.policy import PolicySpec
from gpumem_operator.api.transitions import Finding
from gpumem_operator.api.values import Values
from gpumem_operator.ledger.node_enforcers import ENFORCER_LABELS, AbleNodes

_HOW: Final = {
    "Driver": "chart value agent.enabled has each node's agent find out whether the driver can",
    "MPS": "share the GPUs of some nodes by MPS in the device plugin",
}


def ways_out(needed: str) -> str:
    """What helps where no node can hold limits by this enforcer."""
    return (
        f"{_HOW[needed]}, or ask nodes for less (spec.enforcement.minimumEnforcer, or the chart's"
        " driverLimits)"
    )


def minimum_enforcer_unavailable(
    spec: PolicySpec | None, nodes: AbleNodes, values: Values
) -> Finding:
    """The condition of a policy; `spec` is None where it can not be read."""
    kind = conditions.MINIMUM_ENFORCER_UNAVAILABLE
    if spec is None:
        return Finding(kind, "Unknown", conditions.INVALID_SPEC, "The stored spec can not be read.")
    needed = needed_enforcer(spec, values)
    if needed is None:
        text = "Nothing is asked of nodes: pods may go to any of them."
        return Finding(kind, "False", conditions.NOT_REQUIRED, text)
    why = (
        f"spec.enforcement.minimumEnforcer {needed}"
        if spec.enforcement.minimum_enforcer == needed
        else "the chart's driverLimits"
    )
    able = nodes.able.get(needed, 0)
    counted = f"{able} of {_count(nodes.gpu_nodes)} can hold limits by {needed}"
    if able:
        text = f"{counted}, as {why} asks: pods with a limit go only there."
        return Finding(kind, "False", conditions.NODES_CAN, text)
    return Finding(
        kind,
        "True",
        conditions.NO_NODE_CAN,
        f"{counted}, as {why} asks: pods with a limit wait until a node is labelled"
        f" {ENFORCER_LABELS[needed]}=true. Next step: {ways_out(needed)}.",
    )


def _count(nodes: int) -> str:
    return "1 GPU node" if nodes == 1 else f"{nodes} GPU nodes"

"""What has to hold a pod's limits, by its policy and the chart: which nodes that leaves."""

from collections.abc import Iterator

from gpumem_operator import names
from gpumem_operator.admission.decider import Decider
from gpumem_operator.admission.declaration import Declaration, Declarations
from gpumem_operator.admission.plan import PodPlan
from gpumem_operator.api.values import Values
from gpumem_operator.injection.driver import can_be_limited
from gpumem_operator.ledger.node_enforcers import NodeSummary

WHO = {names.DRIVER_NODE_LABEL: "Driver", names.MPS_NODE_LABEL: "MPS"}


def sets_driver_limits(decider: Decider, values: Values) -> bool:
    """Whether containers get the driver's variables where they can have its limit."""
    if not decider.active or decider.spec is None:
        return False
    wanted = decider.spec.enforcement.minimum_enforcer == "Driver"
    return wanted or values.driver_limits == "Enabled"


def node_label(declarations: Declarations, decider: Decider, values: Values) -> str | None:
    """The label that the pod's node must have; None where any node will do.

    A container on a MIG slice, or without a limit, has nothing that a node could hold better.
    """
    if decider.spec is None or not decider.active:
        return None
    if not any(map(_limited, declarations.rows)):
        return None
    if sets_driver_limits(decider, values):
        # With the variables a container does not even start where the driver can not obey them.
        return names.DRIVER_NODE_LABEL
    return names.MPS_NODE_LABEL if decider.spec.enforcement.minimum_enforcer == "MPS" else None


def doubts(
    plan: PodPlan,
    declarations: Declarations,
    *,
    decider: Decider,
    nodes: NodeSummary | None,
) -> Iterator[str]:
    """Warnings: what is required and can be had nowhere; of nodes that are not known, nothing."""
    if plan.node_label is not None and nodes is not None:
        needed = WHO[plan.node_label]
        if needed not in nodes.enforcers:
            yield (
                f"no node can hold limits by {needed} ({plan.node_label}=true), which"
                f" {decider.title} or the chart asks for: the pod waits until one can"
            )
    minimum = decider.spec.enforcement.minimum_enforcer if decider.spec else "None"
    if not decider.active or minimum == "None":
        return
    sliced = [row.container.name for row in declarations.rows if _less_than_slice(row)]
    if sliced:
        yield (
            f"{', '.join(sliced[:3])}: {minimum} holds no limit below a MIG slice, only the"
            " slice itself is held: declare the whole slice, or ask for a smaller one"
        )


def _limited(row: Declaration) -> bool:
    return row.frozen_bytes is not None and can_be_limited(row.container)


def _less_than_slice(row: Declaration) -> bool:
    profile = row.container.profile_bytes
    return profile is not None and row.frozen_bytes is not None and row.frozen_bytes < profile

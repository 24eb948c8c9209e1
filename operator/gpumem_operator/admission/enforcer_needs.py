"""What has to hold a pod's limits, by its policy and the chart: which nodes that leaves."""

from collections.abc import Iterator
from typing import Final, Literal

from gpumem_operator.admission.decider import Decider
from gpumem_operator.admission.declaration import Declaration, Declarations
from gpumem_operator.admission.plan import PodPlan
from gpumem_operator.api.count import named
from gpumem_operator.api.policy import DefaultPolicySpec
from gpumem_operator.api.values import Values
from gpumem_operator.injection.driver import can_be_limited
from gpumem_operator.ledger.node_enforcers import ENFORCER_LABELS, NodeSummary

WHO: Final = {label: who for who, label in ENFORCER_LABELS.items()}


def needed_enforcer(spec: DefaultPolicySpec, values: Values) -> Literal["Driver", "MPS"] | None:
    """What the nodes of the spec's pods must be able to hold limits with; None where any will do.

    With the chart's driverLimits a container gets the driver's variables, and does not even start
    where the driver can not obey them.
    """
    minimum = spec.enforcement.minimum_enforcer
    if spec.mode != "Active":
        return None
    if minimum == "Driver" or values.driver_limits == "Enabled":
        return "Driver"
    return "MPS" if minimum == "MPS" else None


def sets_driver_limits(decider: Decider, values: Values) -> bool:
    """Whether containers get the driver's variables where they can have its limit."""
    return decider.spec is not None and needed_enforcer(decider.spec, values) == "Driver"


def node_label(declarations: Declarations, decider: Decider, values: Values) -> str | None:
    """The label that the pod's node must have; None where any node will do.

    A container on a MIG slice, or without a limit, has nothing that a node could hold better.
    """
    if decider.spec is None or not any(map(_limited, declarations.rows)):
        return None
    needed = needed_enforcer(decider.spec, values)
    return None if needed is None else ENFORCER_LABELS[needed]


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
            f"{named(sliced)}: {minimum} holds no limit below a MIG slice, only the"
            " slice itself is held: declare the whole slice, or ask for a smaller one"
        )


def _limited(row: Declaration) -> bool:
    return row.frozen_bytes is not None and can_be_limited(row.container)


def _less_than_slice(row: Declaration) -> bool:
    profile = row.container.profile_bytes
    return profile is not None and row.frozen_bytes is not None and row.frozen_bytes < profile

"""What can be said about a tenant's quota from one pod alone: that it waits, or can never fit.

How much of the quota is left is not read here: for pods that wait the leader decides who goes on,
for the others the call that reserves.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gpumem_operator import names
from gpumem_operator.admission.declaration import Declarations
from gpumem_operator.api.count import count
from gpumem_operator.api.pods import PodFacts
from gpumem_operator.api.quantity import format_bytes
from gpumem_operator.api.records import TenantRecord
from gpumem_operator.api.values import Values
from gpumem_operator.api.violation import Violation
from gpumem_operator.ledger.charge import PodCharge, charge_facts, rates_of
from gpumem_operator.ledger.groups import group_size
from gpumem_operator.ledger.obstacle_words import (
    asks,
    counted_whole,
    declare_first,
    larger_than_quota,
)


@dataclass(frozen=True)
class QuotaCheck:
    """Pods that can never fit are refused by Queue and Reject, and reported by Warn."""

    violations: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()


def check(
    facts: PodFacts,
    declarations: Declarations,
    tenants: tuple[TenantRecord, ...],
    *,
    values: Values,
    grouped: bool = True,
) -> QuotaCheck:
    """Compares what the pod is charged with the whole quota of each of its tenants.

    `grouped` is whether the size of a group means anything: a controller makes the pod.
    """
    if not tenants:
        return QuotaCheck()
    limits = {
        row.container.name: (row.source, row.limit_bytes)
        for row in declarations.rows
        if row.container.gpu_count
    }
    violations: list[Violation] = []
    warnings: list[str] = []
    for tenant in tenants:
        if tenant.spec is None:
            continue
        quota = tenant.spec.quota
        charge = charge_facts(facts, rates_of(quota, values), limits=limits)
        if (charge.charge_bytes or 0) <= quota.limit_bytes:
            if grouped and quota.on_exceeded == "Queue":
                warnings.extend(_group_never_fits(facts, tenant.name, charge, quota.limit_bytes))
            continue
        text = _never_fits(charge, quota.limit_bytes)
        if quota.on_exceeded == "Warn":
            warnings.append(f"tenant {tenant.name} (onExceeded: Warn) lets it in: {text}")
        else:
            violations.append(Violation(f"tenant {tenant.name}", text))
    return QuotaCheck(tuple(violations), tuple(warnings))


def waits(facts: PodFacts, tenants: tuple[TenantRecord, ...]) -> bool:
    """Whether the pod gets the gate of a queue.

    A static pod runs already, and what is written about it changes nothing.
    """
    return not facts.mirror and _any(tenants, "Queue") and not reserves(facts, tenants)


def reserves(facts: PodFacts, tenants: tuple[TenantRecord, ...]) -> bool:
    """Whether the pod needs room before it is stored: one that may not wait, or can not.

    A pod that names its node can have no gate.
    """
    if facts.mirror:
        return False
    return _any(tenants, "Reject") or (bool(facts.node_name) and _any(tenants, "Queue"))


def group_that_can_not_wait(
    facts: PodFacts, tenants: tuple[TenantRecord, ...]
) -> Iterator[Violation]:
    """Pods are refused or let in one at a time, so of a group some would run without the others."""
    size = group_size(facts.annotations.get(names.GROUP_SIZE_ANNOTATION))
    if size is None or size == 1 or not reserves(facts, tenants):
        return
    rejecting = next((one.name for one in tenants if _does(one, "Reject")), None)
    why = (
        f"pods of tenant {rejecting} (onExceeded: Reject) are let in or refused one at a time"
        if rejecting
        else "a pod with spec.nodeName can not wait for the others"
    )
    yield Violation(
        f"metadata.annotations[{names.GROUP_SIZE_ANNOTATION}]",
        f"a group of {size} can not go on whole here, because {why}: leave the annotation out, or"
        + (
            " have the tenant queue (onExceeded: Queue)"
            if rejecting
            else " leave spec.nodeName"
            " out and choose the node with spec.nodeSelector or spec.affinity"
        ),
    )


def faulty_group(facts: PodFacts) -> Iterator[Violation]:
    """A group whose size can not be read would never be whole."""
    text = facts.annotations.get(names.GROUP_SIZE_ANNOTATION)
    if text is not None and group_size(text) is None:
        yield Violation(
            f"metadata.annotations[{names.GROUP_SIZE_ANNOTATION}]",
            f"{text!r} is not a number of pods: give one from 1 to {names.MOST_IN_A_GROUP}",
        )


def _any(tenants: tuple[TenantRecord, ...], exceeded: str) -> bool:
    return any(_does(one, exceeded) for one in tenants)


def _does(tenant: TenantRecord, exceeded: str) -> bool:
    return tenant.spec is not None and tenant.spec.quota.on_exceeded == exceeded


def _group_never_fits(
    facts: PodFacts, tenant: str, charge: PodCharge, limit_bytes: int
) -> Iterator[str]:
    """Its other pods are not known yet, and may ask for less: it is let in and waits."""
    size = group_size(facts.annotations.get(names.GROUP_SIZE_ANNOTATION)) or 1
    amount = size * (charge.charge_bytes or 0)
    if size > 1 and amount > limit_bytes:
        who = f"a group of {size} such pods {asks(charge.undeclared)}"
        step = declare_first(
            "ask for less, make the group smaller, or have the quota raised", charge.undeclared
        )
        yield (
            f"tenant {tenant}: {larger_than_quota(who, amount, limit_bytes)}, so none of them would"
            f" ever run: {step}"
        )


def _never_fits(charge: PodCharge, limit_bytes: int) -> str:
    rows = [
        f"{row.name} {format_bytes(row.charge_bytes or 0)} over {count(row.gpus, 'GPU')}"
        for row in charge.containers[:5]
    ]
    if len(charge.containers) > len(rows):
        rows.append(f"and {count(len(charge.containers) - len(rows), 'more container')}")
    sentences = [
        larger_than_quota(
            f"the pod {asks(charge.undeclared)}",
            charge.charge_bytes or 0,
            limit_bytes,
            detail=f" ({'; '.join(rows)})",
        ),
        *counted_whole(charge.undeclared),
    ]
    step = declare_first("ask for less, or have the quota raised", charge.undeclared)
    return f"{'. '.join(sentences)}: {step}"

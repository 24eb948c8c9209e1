"""What can be said about a tenant's quota from one pod alone: that it waits, or can never fit.

How much of the quota is left is not read here: the leader decides who goes on.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gpumem_operator import names
from gpumem_operator.admission.declaration import Declarations
from gpumem_operator.api.pods import PodFacts
from gpumem_operator.api.quantity import format_bytes
from gpumem_operator.api.records import TenantRecord
from gpumem_operator.api.values import Values
from gpumem_operator.api.violation import Violation
from gpumem_operator.ledger.charge import PodCharge, charge_facts, rates_of
from gpumem_operator.ledger.groups import group_size


@dataclass(frozen=True)
class QuotaCheck:
    """Pods that can never fit are refused by Queue and Reject, and reported by Warn."""

    violations: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()


def check(
    facts: PodFacts,
    declarations: Declarations,
    tenants: tuple[TenantRecord, ...],
    values: Values,
) -> QuotaCheck:
    """Compares what the pod is charged with the whole quota of each of its tenants."""
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
            continue
        text = _never_fits(charge, quota.limit_bytes)
        if quota.on_exceeded == "Warn":
            warnings.append(f"tenant {tenant.name}: {text}")
        else:
            violations.append(Violation(f"tenant {tenant.name}", text))
    return QuotaCheck(tuple(violations), tuple(warnings))


def waits(facts: PodFacts, tenants: tuple[TenantRecord, ...]) -> bool:
    """Whether the pod gets the gate of a queue.

    A static pod runs already, and what is written about it changes nothing.
    """
    return not facts.mirror and any(map(_queues, tenants))


def places_itself(facts: PodFacts, tenants: tuple[TenantRecord, ...]) -> Iterator[Violation]:
    """Pods that name their node can not have a gate, and so can not wait."""
    queues = next(filter(_queues, tenants), None)
    if queues is None or not facts.node_name or facts.mirror:
        return
    yield Violation(
        "spec.nodeName",
        f"{facts.node_name} is set, so the pod could not wait for room in tenant {queues.name}:"
        " choose the node with spec.nodeSelector or spec.affinity, and leave it to the scheduler",
    )


def faulty_group(facts: PodFacts) -> Iterator[Violation]:
    """A group whose size can not be read would never be whole."""
    text = facts.annotations.get(names.GROUP_SIZE_ANNOTATION)
    if text is not None and group_size(text) is None:
        yield Violation(
            f"metadata.annotations[{names.GROUP_SIZE_ANNOTATION}]",
            f"{text!r} is not a number of pods: give one from 1 to {names.MOST_IN_A_GROUP}",
        )


def _queues(tenant: TenantRecord) -> bool:
    return tenant.spec is not None and tenant.spec.quota.on_exceeded == "Queue"


def _never_fits(charge: PodCharge, limit_bytes: int) -> str:
    rows = [
        f"{row.name} {format_bytes(row.charge_bytes or 0)} over {row.gpus} "
        f"GPU{'' if row.gpus == 1 else 's'}"
        for row in charge.containers[:5]
    ]
    if len(charge.containers) > len(rows):
        rows.append(f"and {len(charge.containers) - len(rows)} more containers")
    return (
        f"the pod asks for {format_bytes(charge.charge_bytes or 0)} ({'; '.join(rows)}), more than "
        f"the whole quota of {format_bytes(limit_bytes)}: ask for less, or have the quota raised"
    )

"""What can be said about a tenant's quota from one pod alone: it can never fit.

How much of the quota is left is not read here.
"""

from dataclasses import dataclass

from gpumem_operator.admission.declaration import Declarations
from gpumem_operator.api.pods import PodFacts
from gpumem_operator.api.quantity import format_bytes
from gpumem_operator.api.records import TenantRecord
from gpumem_operator.api.values import Values
from gpumem_operator.api.violation import Violation
from gpumem_operator.ledger.charge import PodCharge, charge_facts, rates_of


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

"""`kubectl gpumem charge`: what each pod and tenant would be charged."""

from collections.abc import Sequence
from typing import Any

from gpumem_operator.api.count import named
from gpumem_operator.api.records import TenantRecord
from gpumem_operator.api.values import Values
from gpumem_operator.cli.offline import Admitted
from gpumem_operator.ledger.charge import (
    UNKNOWN_RATES,
    PodCharge,
    Rates,
    charge_pod,
    has_finished,
    rates_of,
)


def pod_row(admitted: Admitted, values: Values) -> dict[str, Any]:
    """The row of a pod; of a workload, with its replicas multiplied in."""
    charges = [_charge(admitted, values, rates) for rates in _rates(admitted, values)]
    known = [charge.charge_bytes for charge in charges if charge.charge_bytes is not None]
    replicas = admitted.workload.replicas
    decider = admitted.decider
    row: dict[str, Any] = {
        "namespace": admitted.workload.namespace,
        "name": admitted.workload.name,
        "policy": decider.policy_name if decider else None,
        "chargeBytes": max(known) * (1 if replicas is None else replicas) if known else None,
        "containers": [
            {
                "name": container.name,
                "gpus": container.gpus,
                "limitBytes": container.limit_bytes,
                "source": container.source,
            }
            for container in charges[0].containers
        ],
    }
    return row if replicas is None else row | {"replicas": replicas}


def tenant_rows(
    admitted: Sequence[Admitted], tenants: Sequence[TenantRecord], values: Values
) -> list[dict[str, Any]]:
    """One row for each tenant in the files, by name."""
    rows = []
    for tenant in sorted(tenants, key=lambda record: record.name):
        if tenant.spec is None:
            continue
        rates = rates_of(tenant.spec.quota, values)
        mine = [one for one in admitted if tenant in one.surroundings.tenants and not one.ignored]
        charged = sum(_total(one, values, rates) for one in mine)
        limit = tenant.spec.quota.limit_bytes
        rows.append(
            {
                "name": tenant.name,
                "chargedBytes": charged,
                "limitBytes": limit,
                "fits": charged <= limit,
            }
        )
    return rows


def unknown_charge(admitted: Admitted, values: Values) -> str | None:
    """A warning where no number says what the pod takes."""
    charge = _charge(admitted, values, _rates(admitted, values)[0])
    if not charge.unknown:
        return None
    verb = "declares" if len(charge.unknown) == 1 else "declare"
    return (
        f"{named(charge.unknown, most=5)} {verb} no GPU memory and no tenant says what a whole GPU "
        "counts for: it is not in chargeBytes"
    )


def _rates(admitted: Admitted, values: Values) -> list[Rates]:
    tenants = () if admitted.ignored else admitted.surroundings.tenants
    specs = [tenant.spec for tenant in tenants if tenant.spec is not None]
    return [rates_of(spec.quota, values) for spec in specs] or [UNKNOWN_RATES]


def _total(admitted: Admitted, values: Values, rates: Rates) -> int:
    replicas = admitted.workload.replicas
    charge = _charge(admitted, values, rates).charge_bytes or 0
    return charge if replicas is None else charge * replicas


def _charge(admitted: Admitted, values: Values, rates: Rates) -> PodCharge:
    charge = charge_pod(admitted.pod, values, rates=rates)
    free = has_finished(admitted.pod) or not admitted.asks_for_gpus
    return PodCharge(0, charge.containers) if free else charge

"""What a pod is charged to a tenant, with where the number comes from. Pure."""

from collections.abc import Mapping
from typing import Any

from gpumem_operator.api.count import count
from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.api.tenant import Quota
from gpumem_operator.api.values import Values
from gpumem_operator.ledger.charge import ContainerCharge, charge_pod, rates_of

Row = Mapping[str, Any]


def charged_to(pod: Row, tenant: str, quota: Quota, values: Values, status: Row) -> str:
    """`status` is the tenant's, raw: what it says of all pods together where it is past its
    quota."""
    charge = charge_pod(pod, values, rates=rates_of(quota, values))
    if charge.charge_bytes is None:
        return f"an unknown amount to tenant {tenant}"
    whole = [_whole(row, quota) for row in charge.containers if _is_whole(row, quota)]
    basis = f" ({'; '.join(whole)})" if whole else ""
    return f"{show_bytes(charge.charge_bytes)} to tenant {tenant}{basis}{_past(quota, status)}"


def _is_whole(row: ContainerCharge, quota: Quota) -> bool:
    """Whether its GPUs count whole: that is in no line about its limit."""
    whole = quota.whole_gpu_bytes
    return bool(row.gpus) and row.source == "WholeGPU" and row.charge_bytes == whole * row.gpus


def _whole(row: ContainerCharge, quota: Quota) -> str:
    return f"{row.name}: {count(row.gpus, 'GPU')} x wholeGPU {show_bytes(quota.whole_gpu_bytes)}"


def _past(quota: Quota, status: Row) -> str:
    charged = status.get("chargedBytes")
    if quota.on_exceeded != "Warn" or charged is None or charged <= quota.limit_bytes:
        return ""
    return (
        f"; the tenant is past its quota: {show_bytes(charged)} charged of"
        f" {show_bytes(quota.limit_bytes)} (onExceeded: Warn lets pods in)"
    )

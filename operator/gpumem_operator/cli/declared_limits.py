"""Limits, caps and reserves as they are frozen into a stored pod. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from gpumem_operator import names
from gpumem_operator.admission.slipped import SLIPPED
from gpumem_operator.api.pods import KINDS, env_value
from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.api.seal import without_declarations
from gpumem_operator.api.values import Values
from gpumem_operator.injection.target import allocator_cap, process_share
from gpumem_operator.ledger.charge import charge_pod

Row = Mapping[str, Any]


def as_believed(pod: Row) -> Row:
    """Without declarations of a pod of which the operator says that admission did not handle it.

    The seal of a declaration can be checked by the operator alone; its label can be read.
    """
    labels = pod["metadata"].get("labels") or {}
    return without_declarations(pod) if labels.get(names.MANAGED_LABEL) == SLIPPED else pod


def limits_of(pod: Row, values: Values) -> list[dict[str, Any]]:
    """Of each GPU container of a believed pod: its limit per GPU, the cap of its processes and the
    reserve beside it.

    Null: there is no limit, or no shim that would set a cap, or the reserve leaves nothing.
    """
    rows = []
    for row in charge_pod(pod, values).containers:
        raw = next(one for one in _every_container(pod) if one.get("name") == row.name)
        share, reserve = _share_and_reserve(raw, row.limit_bytes)
        rows.append(
            {
                "name": row.name,
                "gpus": row.gpus,
                "limitBytes": row.limit_bytes,
                "limitSource": row.source,
                "capBytes": None if reserve is None else allocator_cap(share, reserve),
                "reserveBytes": reserve,
            }
        )
    return rows


def _every_container(pod: Row) -> Iterator[Row]:
    for kind in KINDS:
        yield from (pod.get("spec") or {}).get(kind) or ()


def _share_and_reserve(container: Row, limit: int | None) -> tuple[int | None, int | None]:
    """What each process may hold, and what of it is not for its allocators; as admission wrote."""
    reserve = env_value(container, names.RESERVE_BYTES_ENV)
    if limit is None or reserve is None or not reserve.isdecimal():
        return None, None
    processes = env_value(container, names.PROCESSES_PER_GPU_ENV) or "1"
    number = int(processes) if processes.isdecimal() else 1
    return process_share(limit, max(number, 1)), int(reserve)


def cap_of(row: Row) -> str:
    """The cap and the reserve of a row of `limits_of`, for people."""
    reserve = show_bytes(row["reserveBytes"])
    if row["capBytes"] is None:
        return f"none, since the reserve of {reserve} leaves nothing of the limit"
    return f"{show_bytes(row['capBytes'])} for its frameworks, beside a reserve of {reserve}"

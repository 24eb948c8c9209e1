"""Cells of the tables about pods: what is not known says so, and is never 0."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpumem_operator.api.quantity import show_bytes

Row = Mapping[str, Any]


def amount(row: Row) -> str:
    """What is used, or why that is not known; what has not started holds nothing."""
    used = row.get("usedBytes")
    if waits(row):
        return "0 (not started)"
    return show_bytes(used) if used is not None else f"unknown: {row.get('unknown')}{floor(row)}"


def waits(row: Row) -> bool:
    """Whether it has not started, and so holds nothing."""
    return row.get("started") is False and row.get("usedBytes") == 0


def floor(row: Row) -> str:
    """The part that is known of what is not; empty where nothing is."""
    least = row.get("atLeastBytes")
    return f", at least {show_bytes(least)}" if least else ""


def known(number: int | None) -> str:
    """An amount of which the reason is told elsewhere."""
    return "unknown" if number is None else show_bytes(number)


def limits(containers: Sequence[Row]) -> str:
    """Limits per GPU with the number of GPUs: `8Gi`, `2x8Gi`; `none` for a container without."""
    shown = []
    for one in containers:
        limit, gpus = one.get("limitBytes"), one.get("gpus", 1)
        text = "none" if limit is None else show_bytes(limit)
        shown.append(text if gpus == 1 else f"{gpus}x{text}")
    return " + ".join(shown) or "-"


def held(pod: Row) -> str:
    """What holds a pod's limit, with the reason; one that has not started holds nothing."""
    if waits(pod):
        return "-"
    kind, reason = pod.get("enforcedBy"), pod.get("enforcedReason")
    return f"{kind}: {reason}" if kind and reason else kind or "-"

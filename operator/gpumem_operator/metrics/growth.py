"""Series about use that only grows; the leader sets them, and takes them away when it ends."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from prometheus_client import Gauge

_LABELS: Final = ("namespace", "pod", "container", "gpu")
_RATE: Final = Gauge(
    "gpumem_growth_bytes_per_second",
    "How fast the least that a container holds has grown for half an hour; no series where it has"
    " not.",
    _LABELS,
)
_LEFT: Final = Gauge(
    "gpumem_seconds_to_limit",
    "When a container that only grows is at its limit; no series where it does not grow.",
    _LABELS,
)


class Growing(NamedTuple):
    """One container on one GPU."""

    labels: tuple[str, str, str, str]
    bytes_per_second: float
    seconds_to_limit: float


def show(growing: Iterable[Growing]) -> None:
    """Show these and no others."""
    _RATE.clear()
    _LEFT.clear()
    for one in growing:
        _RATE.labels(*one.labels).set(one.bytes_per_second)
        _LEFT.labels(*one.labels).set(one.seconds_to_limit)

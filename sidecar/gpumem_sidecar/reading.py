"""What NVML said at one moment, before anybody asks whose processes these are.

Named tuples and no dataclasses in this package: `dataclasses` costs every GPU pod 1.5 MiB more.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Reason = Literal[
    "NoNVMLInSidecar",
    "HostPids",
    "DriverHidesMemory",
    "NotAvailable",
    "ProcessesNotShared",
    "DeviceLost",
    "Timeout",
    "NotSupported",
    "NVMLError",
    "NotAttributed",
]
"""Why an amount is unknown, as in the report."""


class Listed(NamedTuple):
    """One process on one card, as NVML lists it."""

    pid: int
    bytes: int | None
    """None: NVML gives no amount."""
    mps: bool = False
    driver_limit_bytes: int | None = None
    """Of its container's cgroup on this card."""


class Card(NamedTuple):
    """One card or MIG instance. None is unknown; `unknown` says why, for amounts or processes."""

    uuid: str
    number: int
    model: str = ""
    parent: str | None = None
    total_bytes: int | None = None
    reserved_bytes: int | None = None
    used_bytes: int | None = None
    """Without the reserve; where that is unknown, it may be counted here."""
    unknown: Reason | None = None
    processes: tuple[Listed, ...] = ()
    listed_ticks: int = 0
    """Clock ticks after boot, as in /proc/PID/stat, at which the processes were listed."""


class Reading(NamedTuple):
    """All cards; `unknown` says why there is no whole picture."""

    driver_version: str | None = None
    unknown: Reason | None = None
    cards: tuple[Card, ...] = ()
    driver_limits: Literal["Supported", "Unsupported"] | None = None
    """Whether the driver can limit cgroups on any of the cards; None where nobody looked."""

"""Byte-seconds per tenant and namespace: what was charged and what was used, over time.

They outlive pods. What is not known adds nothing to what was used, so the time in which pods could
not be measured is counted as well: a sum without it would take the unknown for zero.
"""

from collections.abc import Iterable
from dataclasses import dataclass

Account = tuple[str, str]
"""Tenant (empty without one) and namespace."""


@dataclass
class Totals:
    """Of one account."""

    charged: float = 0.0
    used: float = 0.0
    unmeasured_pod_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Entry:
    """One pod of an account at one moment."""

    account: Account
    charged_bytes: int | None
    """None where the charge is not known, and for a pod that is not charged."""
    used_bytes: int | None
    started: bool


class ByteSeconds:
    """Sums since the present leader began; each interval counts what was true at its end."""

    def __init__(self) -> None:
        self.totals: dict[Account, Totals] = {}
        self._last: float | None = None

    def advance(self, entries: Iterable[Entry], now: float) -> None:
        """Add the time since the last call, in seconds of any clock that never goes back."""
        passed = 0.0 if self._last is None else max(now - self._last, 0.0)
        self._last = now
        for entry in entries:
            totals = self.totals.setdefault(entry.account, Totals())
            totals.charged += (entry.charged_bytes or 0) * passed
            if entry.used_bytes is not None:
                totals.used += entry.used_bytes * passed
            elif entry.started:
                totals.unmeasured_pod_seconds += passed

    def keep(self, namespaces: Iterable[str]) -> None:
        """Drop accounts of namespaces that are gone."""
        kept = set(namespaces)
        self.totals = {key: value for key, value in self.totals.items() if key[1] in kept}

"""What is known of one pod's use, as statuses tell it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gpumem_operator.api.quantity import add_bytes

_WORTH_A_WRITE: Final = 100
"""A stored sum stands until it is off by more than one part in so many."""


@dataclass(frozen=True)
class Measure:
    """One pod."""

    used_bytes: int | None
    """None where it is not known."""
    unknown: str | None
    """Why it is not known."""
    started: bool
    """Whether it may hold anything: one that has not started holds nothing."""
    enforcer: str
    """What holds its limits: a field of the policy's `status.enforcers`."""

    @property
    def missing(self) -> bool:
        """It may hold something, and nobody can say how much."""
        return self.started and self.used_bytes is None


NOT_MEASURED: Final = Measure(None, "NotMeasured", True, "unknown")


def used_of(measures: Sequence[Measure]) -> int | None:
    """The sum of what is known; None where something runs and nothing of it is known."""
    known = [measure.used_bytes for measure in measures if measure.used_bytes is not None]
    return None if not known and any(m.missing for m in measures) else add_bytes(known)


def settled(used: int | None, stored: int | None) -> int | None:
    """The number to store: the stored one while it is as good as the new one."""
    if used is None or stored is None or not used:
        return used
    return stored if abs(used - stored) * _WORTH_A_WRITE <= stored else used

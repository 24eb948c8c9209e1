"""Whose word counts about a tenant: each leader's epoch is higher than that of all before it.

A new leader first writes its epoch into every tenant, then lists the pods, and only then decides.
What an earlier leader still has on its way was read under another resourceVersion and is refused;
what it wrote before, the new leader has read.
"""

from collections.abc import Iterable
from enum import Enum


class Standing(Enum):
    """What a leader may do with a tenant's status as it was read."""

    OWN = "it may be written"
    EARLIER = "the epoch has to be raised and pods listed first"
    LATER = "somebody else leads"


def next_epoch(stored: Iterable[int | None]) -> int:
    """The epoch of a new leader, from those in the statuses of all tenants."""
    return max((epoch or 0 for epoch in stored), default=0) + 1


def standing(stored: int | None, own: int) -> Standing:
    """Compares the epoch in a status with the leader's own."""
    if stored is not None and stored > own:
        return Standing.LATER
    return Standing.OWN if stored == own else Standing.EARLIER

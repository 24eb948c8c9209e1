"""Whose word counts about a tenant: each leader's epoch is higher than that of all before it.

A new leader first writes its epoch into every tenant, then lists the pods, and only then decides.
What an earlier leader still has on its way was read under another resourceVersion and is refused;
what it wrote before, the new leader has read. Two that begin at once may choose the same epoch: it
belongs to the one that stored it in a tenant first.
"""

from collections.abc import Iterable
from enum import Enum

from gpumem_operator.api.quantity import whole_number


class Standing(Enum):
    """What a leader may do with a tenant's status as it was read."""

    OWN = "it may be written"
    EARLIER = "the epoch has to be raised and pods listed first"
    LATER = "somebody else leads"
    TAKEN = "somebody else chose the same epoch: a higher one is needed"


def next_epoch(stored: Iterable[int | None]) -> int:
    """The epoch of a new leader, from those in the statuses of all tenants."""
    return max((epoch or 0 for epoch in stored), default=0) + 1


def standing(stored: int | None, own: int, *, raised: bool) -> Standing:
    """Compares the epoch in a status with the leader's own; `raised` where it wrote it there."""
    if stored is None or stored < own:
        return Standing.EARLIER
    if stored > own:
        return Standing.LATER
    return Standing.OWN if raised else Standing.TAKEN


def fence(epoch: int, version: int) -> str:
    """What a leader writes into a pod before it gives room away that was kept for it.

    `version` is the pod's resourceVersion that it ends, so that no mark is there already.
    """
    return f"{epoch}.{version}"


def fenced_by(text: str | None) -> int:
    """The epoch in such a mark; 0 where there is none that can be read."""
    return whole_number((text or "").partition(".")[0]) or 0

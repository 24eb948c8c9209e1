"""Whose turn it is first, where several pods are over their limits.

On a card that is nearly full, those over their limits stand in the way of those inside theirs: they
go first, the one with the largest excess before the others. A pod inside its limit is never in the
list, however full the card is and whatever it reserved for itself at its start.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gpumem_operator.reports.cards import Card

FULL_PERCENT: Final = 95
"""Of what processes can have of a card (total less reserved): above it, the card is nearly full."""


@dataclass(frozen=True, slots=True)
class Excess:
    """A pod that is over its limit."""

    uid: str
    bytes_by_gpu: Mapping[str, int]
    """Above the limit, by GPU."""

    @property
    def total(self) -> int:
        return sum(self.bytes_by_gpu.values())


def full_cards(cards: Iterable[Card]) -> frozenset[str]:
    """UUIDs of the cards that are nearly full; cards that can not be read are none of them."""
    return frozenset(
        card.uuid
        for card in cards
        if card.parts is not None
        and (card.parts.total - card.parts.reserved - card.parts.free) * 100
        > (card.parts.total - card.parts.reserved) * FULL_PERCENT
    )


def in_order(pods: Iterable[Excess], full: Collection[str]) -> list[str]:
    """Uids: pods on nearly full cards first, the largest excess there before others."""

    def rank(pod: Excess) -> tuple[int, int, str]:
        crowding = sum(excess for gpu, excess in pod.bytes_by_gpu.items() if gpu in full)
        return (-crowding, -pod.total, pod.uid)

    return [pod.uid for pod in sorted(pods, key=rank)]

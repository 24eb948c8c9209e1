"""What people read about room that they did not get, whether their pod waits or was refused."""

from collections.abc import Iterator, Sequence
from typing import Final

from gpumem_operator.api.quantity import show_apart, show_bytes
from gpumem_operator.ledger.book import Obstacle, Reason
from gpumem_operator.ledger.charged_pod import ChargedPod

MOST_HOLDERS: Final = 3


def asked_and_left(who_asks: str, obstacle: Obstacle) -> str:
    """The arithmetic; `who_asks` is subject and verb: "it asks"."""
    amount, room = obstacle.asked_bytes, obstacle.room
    if room is None:
        return f"{who_asks} for {show_bytes(amount)}"
    if obstacle.reason is Reason.NEVER_FITS:
        limit = show_apart(room.limit_bytes, amount)
        asked = show_apart(amount, room.limit_bytes)
        return f"{who_asks} for {asked}, which is more than the whole quota of {limit}"
    asked = show_apart(amount, max(room.left_bytes, 0))
    figures = f"{who_asks} for {asked}, and {room.in_words(amount)}"
    if obstacle.reason is Reason.HELD:
        if not obstacle.holder:
            return f"{figures}, held for pods that have waited longer"
        return f"{figures}, held for {obstacle.holder}, which has waited longer"
    return figures


def largest_holders(holders: Sequence[ChargedPod]) -> Iterator[str]:
    """One sentence on the first of charged pods, the largest first; none where there are none."""
    if holders:
        named = ", ".join(
            f"{pod.title} {show_bytes(pod.charged_bytes or 0)}" for pod in holders[:MOST_HOLDERS]
        )
        yield f"Most is charged to {named}"

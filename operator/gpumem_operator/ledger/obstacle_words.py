"""What people read about room that they did not get, whether their pod waits or was refused."""

from collections.abc import Iterator, Sequence
from typing import Final

from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.ledger.book import Obstacle, Reason
from gpumem_operator.ledger.charged_pod import ChargedPod

MOST_HOLDERS: Final = 3


def asked_and_left(who_asks: str, obstacle: Obstacle) -> str:
    """The arithmetic; `who_asks` is subject and verb: "it asks"."""
    asked = f"{who_asks} for {show_bytes(obstacle.asked_bytes)}"
    if obstacle.room is None:
        return asked
    if obstacle.reason is Reason.NEVER_FITS:
        limit = show_bytes(obstacle.room.limit_bytes)
        return f"{asked}, which is more than the whole quota of {limit}"
    figures = f"{asked}, and {obstacle.room.in_words()}"
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

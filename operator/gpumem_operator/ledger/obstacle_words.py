"""What people read about room that they did not get, whether their pod waits or was refused."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from gpumem_operator import names
from gpumem_operator.api.count import named
from gpumem_operator.api.quantity import show_apart, show_bytes
from gpumem_operator.ledger.book import Obstacle, Reason
from gpumem_operator.ledger.charged_pod import ChargedPod

MOST_HOLDERS: Final = 3
SO_MANY: Final = "so many pods of the tenant are on their way at once that no more can be noted"


def asks(undeclared: Sequence[str] = ()) -> str:
    """The verb of a pod; one that declares nothing asked for no amount."""
    return "counts as" if undeclared else "asks for"


def cause(
    obstacle: Obstacle, *, pods: int = 1, missing: int = 0, undeclared: Sequence[str] = ()
) -> str:
    """Why a pod waits, of so many that go on together; `missing` ones of them are not there."""
    if obstacle.reason is Reason.UNREADABLE:
        return (
            "a tenant of its namespace can not be read or written, so it is not known how much room"
            " there is"
        )
    if obstacle.reason is Reason.FULL:
        return SO_MANY
    if obstacle.reason is Reason.INCOMPLETE:
        return (
            f"{pods} of the {pods + missing} pods of its group are there, and a group goes on whole"
        )
    who = "it" if pods == 1 else f"its group of {pods} pods"
    return asked_and_left(f"{who} {asks(undeclared)}", obstacle)


def asked_and_left(who_asks: str, obstacle: Obstacle) -> str:
    """The arithmetic; `who_asks` is subject and verb: "it asks for"."""
    amount, room = obstacle.asked_bytes, obstacle.room
    if room is None:
        return f"{who_asks} {show_bytes(amount)}"
    if obstacle.reason is Reason.NEVER_FITS:
        return larger_than_quota(who_asks, amount, room.limit_bytes)
    asked = show_apart(amount, max(room.left_bytes, 0))
    figures = f"{who_asks} {asked}, and {room.in_words(amount)}"
    if obstacle.reason is Reason.HELD:
        return f"{figures}, {held_for(obstacle.holder)}"
    if amount <= room.left_bytes:
        return figures
    return f"{figures}: {to_become_free(amount, room.left_bytes)}"


def larger_than_quota(who_asks: str, amount: int, limit_bytes: int, *, detail: str = "") -> str:
    """What never fits; `detail` follows the amount."""
    asked, limit = show_apart(amount, limit_bytes), show_apart(limit_bytes, amount)
    return f"{who_asks} {asked}{detail}, which is more than the whole quota of {limit}"


def held_for(holder: str) -> str:
    """Of room; `holder` is the pod by namespace and name, empty where it is not known."""
    return f"held for {f'{holder}, which has' if holder else 'pods that have'} waited longer"


def held_back(left_bytes: int, held_bytes: int) -> str:
    """What of the room that is left is held, to follow it; empty where nothing is."""
    held = held_of(left_bytes, held_bytes)
    return f", {held} of it {held_for('')}" if held else ""


def held_of(left_bytes: int, held_bytes: int) -> str:
    """How much of what is left is held: an amount, "all", or nothing."""
    held = min(max(left_bytes, 0), held_bytes)
    if not held:
        return ""
    return "all" if held == left_bytes else show_bytes(held)


def to_become_free(asked_bytes: int, left_bytes: int) -> str:
    """What has to end before so much fits; `left_bytes` is below zero past a quota."""
    needed = show_bytes(asked_bytes - left_bytes)
    if left_bytes >= 0:
        return f"{needed} more have to become free"
    return (
        f"{needed} have to become free, {show_bytes(asked_bytes)} for it and"
        f" {show_bytes(-left_bytes)} by which the tenant is past its quota"
    )


def largest_holders(holders: Sequence[ChargedPod]) -> Iterator[str]:
    """One sentence on the first of charged pods, the largest first; none where there are none."""
    if holders:
        named = ", ".join(
            f"{pod.title} {show_bytes(pod.charged_bytes or 0)}" for pod in holders[:MOST_HOLDERS]
        )
        yield f"Most is charged to {named}"


def counted_whole(undeclared: Sequence[str]) -> Iterator[str]:
    """One sentence on containers that say nothing; none without them."""
    if undeclared:
        several = len(undeclared) > 1
        yield (
            f"{'Containers' if several else 'Container'} {named(undeclared)}"
            f" {'declare' if several else 'declares'} no GPU memory, so each of"
            f" {'their' if several else 'its'} GPUs counts as a whole one"
        )


def next_step(steps: Mapping[Reason, str], reason: Reason, undeclared: Sequence[str]) -> str:
    """The step of this reason, after the one that helps where less would do."""
    less_would_do = reason in (Reason.NO_ROOM, Reason.NEVER_FITS)
    return declare_first(steps[reason], undeclared if less_would_do else ())


def declare_first(step: str, undeclared: Sequence[str]) -> str:
    """What helps a pod, a list of verbs: to say what it needs comes first where it says nothing."""
    return f"declare what it needs ({names.MEMORY_RESOURCE}), {step}" if undeclared else step

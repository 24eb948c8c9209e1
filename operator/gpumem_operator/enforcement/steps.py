"""What an action of a policy says at one moment: do something, wait, stop, or make room for the
next one."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from gpumem_operator.enforcement.facts import Facts, Target

ANSWER_TIME: Final = timedelta(seconds=30)
"""How long an order may stay unanswered: a sender comes every 500 ms while one is open, and one
that has just lost its leader after at most 30 s."""
SETTLE_TIME: Final = timedelta(seconds=3)
"""After an order was carried out, until use is judged again."""
RETRY_TIME: Final = timedelta(seconds=10)
"""Between two attempts to evict a pod."""


def is_recent(moment: datetime, now: datetime, span: timedelta) -> bool:
    """Whether it was less than so long ago; a moment to come is of a clock that was set back."""
    return timedelta() <= now - moment < span


@dataclass(frozen=True, slots=True)
class Orders:
    """Orders to senders, by their ids. They are open until they are answered."""

    action: Literal["Reclaim", "Kill"]
    targets: tuple[tuple[str, Target], ...]


@dataclass(frozen=True, slots=True)
class Removal:
    """The pod is taken away: Evict by the Eviction API, Delete whatever budgets say."""

    action: Literal["Evict", "Delete"]
    grace_seconds: int | None = None
    """How long it gets to end; None: as long as it asks for."""
    note: str = ""
    """For people, where it gets less than it asks for."""


Deed = Orders | Removal


@dataclass(frozen=True, slots=True)
class Doing:
    """The action is under way; without a deed there is nothing to do but to wait."""

    deed: Deed | None = None


@dataclass(frozen=True, slots=True)
class Stopped:
    """Neither this action nor a later one is taken; `reason` becomes that of the condition."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The action is over, and the pod still is above its limit."""

    result: str
    message: str
    bytes: int | None = None


Step = Doing | Stopped | Finished
Policy = Callable[[Facts, datetime, datetime], Step]
"""Facts, when the action began, and now."""


def order_id(facts: Facts, action: str, target: Target) -> str:
    """The same whoever leads, so that an order that is given again is not carried out again."""
    since = int(facts.stored.since.timestamp()) if facts.stored else 0
    return f"{action}-{facts.uid}-{since}-{target.pid}-{target.start_time}"

"""Evict: the Eviction API takes the pod away, as far as disruption budgets let it."""

from datetime import datetime, timedelta
from typing import Final, Literal

from gpumem_operator.enforcement.ending import Ending, most_seconds
from gpumem_operator.enforcement.facts import EVICTION_LOOP, Facts
from gpumem_operator.enforcement.steps import (
    RETRY_TIME,
    Doing,
    Finished,
    Removal,
    Step,
    Stopped,
    is_recent,
)

MOST_EVICTIONS: Final = 3
"""Of pods of one owner within an hour: its next pod would do the same."""
STILL_RUNNING: Final = "StillRunning"


def step(facts: Facts, began: datetime, now: datetime) -> Step:
    """Try now and then, until it works. Where another action follows, it has its turn after
    `evictionTimeoutSeconds`, or when the pod should have ended and has not."""
    if stop := no_further(facts, now):
        return stop
    timeout = timedelta(seconds=facts.settings.eviction_timeout_seconds)
    is_last = facts.settings.actions[-1] == "Evict"
    if facts.tried is not None and not is_last and now - began >= timeout:
        return Finished(facts.tried.result, facts.tried.message)
    return retry(facts, now)


def retry(facts: Facts, now: datetime) -> Doing:
    """An attempt, unless the last one was a moment ago."""
    too_soon = facts.tried is not None and is_recent(facts.tried.at, now, RETRY_TIME)
    return Doing(None if too_soon else removal(facts, "Evict", now))


def removal(facts: Facts, action: Literal["Evict", "Delete"], now: datetime) -> Removal:
    """Takes the pod away; no pod gets longer to end than `evictionTimeoutSeconds`."""
    most = most_seconds(facts.settings)
    if facts.ending is not None:
        note = f"It was told to end by {facts.ending.by:%Y-%m-%d %H:%M:%SZ}, and gets {most} s now"
        return Removal(action, facts.ending.shortened(now, facts.settings), note)
    if facts.asks_seconds <= most:
        return Removal(action)
    note = f"It gets {most} s to end, of {facts.asks_seconds} s that it asks for"
    return Removal(action, most, note)


def no_further(facts: Facts, now: datetime) -> Stopped | Finished | None:
    """Whether taking the pod away can not help any more, or has shown to be of no use."""
    if facts.ending is not None:
        # The one after it is there already: this one is counted, and budgets have let it go.
        return _overdue(facts.ending) if facts.ending.is_overdue(now) else None
    if facts.evictions_of_owner < MOST_EVICTIONS:
        return None
    return Stopped(
        EVICTION_LOOP,
        f"{facts.evictions_of_owner} pods of the same owner were taken away within an hour, and"
        " this one would not be the last. Next step: raise the limit or use less in the program",
    )


def _overdue(ending: Ending) -> Finished:
    return Finished(
        STILL_RUNNING,
        f"it had to end by {ending.by:%Y-%m-%d %H:%M:%SZ}, and still runs. Next step: look at the"
        " kubelet of its node",
    )

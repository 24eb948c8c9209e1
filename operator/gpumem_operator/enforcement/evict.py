"""Evict: the Eviction API takes the pod away, as far as disruption budgets let it."""

from datetime import datetime, timedelta
from typing import Final

from gpumem_operator.enforcement.facts import EVICTION_LOOP, Facts
from gpumem_operator.enforcement.steps import RETRY_TIME, Doing, Finished, Removal, Step, Stopped

MOST_EVICTIONS: Final = 3
"""Of pods of one owner within an hour: its next pod would do the same."""


def step(facts: Facts, began: datetime, now: datetime) -> Step:
    """Try now and then, until it works. Where another action follows, it has its turn after
    `evictionTimeoutSeconds`."""
    if loop := in_a_loop(facts):
        return loop
    timeout = timedelta(seconds=facts.settings.eviction_timeout_seconds)
    is_last = facts.settings.actions[-1] == "Evict"
    if facts.tried is not None and not is_last and now - began >= timeout:
        return Finished(facts.tried.result, facts.tried.message)
    return retry(facts, now)


def retry(facts: Facts, now: datetime) -> Doing:
    """An attempt, unless the last one was a moment ago."""
    too_soon = facts.tried is not None and now - facts.tried.at < RETRY_TIME
    return Doing(None if too_soon else Removal("Evict"))


def in_a_loop(facts: Facts) -> Stopped | None:
    """Whether taking pods of this owner away has shown to be of no use."""
    if facts.evictions_of_owner < MOST_EVICTIONS:
        return None
    return Stopped(
        EVICTION_LOOP,
        f"{facts.evictions_of_owner} pods of the same owner were taken away within an hour, and"
        " this one would not be the last. Next step: raise the limit or use less in the program",
    )

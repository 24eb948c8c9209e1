"""Kill: the agent of the node ends the largest process of a container over its limit."""

from datetime import datetime

from gpumem_operator.enforcement.facts import Facts
from gpumem_operator.enforcement.steps import (
    ANSWER_TIME,
    SETTLE_TIME,
    Doing,
    Finished,
    Orders,
    Step,
    is_recent,
    order_id,
)


def step(facts: Facts, began: datetime, now: datetime) -> Step:
    """One process after the other, until the container is within its limit."""
    keys = [(order_id(facts, "Kill", target), target) for target in facts.killable]
    # What was ended is no longer among those that could be.
    ended = [answer for key, answer in facts.answers.items() if key.startswith("Kill-")]
    if ended and is_recent(max(answer.at for answer in ended), now, SETTLE_TIME):
        return Doing()
    waiting = [(key, target) for key, target in keys if key not in facts.answers]
    if waiting and now - began < ANSWER_TIME:
        return Doing(Orders("Kill", (waiting[0],)))
    if not keys and not ended:
        return Finished("Unsupported", "no node agent sees a process of it with its start time")
    if not ended:
        return Finished("NoAnswer", "the node's agent has not answered")
    return Finished(ended[-1].result, f"{len(ended)} processes were to be ended")

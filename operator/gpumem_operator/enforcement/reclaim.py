"""Reclaim: cached memory is given back, which costs the program nothing but time."""

from datetime import datetime
from typing import Final

from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.enforcement.facts import Answered, Facts
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

_RANK: Final = ("Done", "Busy", "Failed", "NoSuchProcess", "Unsupported")
"""What counts where processes answer differently: what tells most goes first."""


def step(facts: Facts, began: datetime, now: datetime) -> Step:
    """Orders to all processes that can; over when all have answered or time is up."""
    orders = {order_id(facts, "Reclaim", target): target for target in facts.reclaimable}
    answers = {key: facts.answers[key] for key in orders if key in facts.answers}
    waiting = tuple((key, target) for key, target in orders.items() if key not in answers)
    if waiting and now - began < ANSWER_TIME:
        return Doing(Orders("Reclaim", waiting))
    done = [answer.at for answer in answers.values() if answer.result == "Done"]
    if done and is_recent(max(done), now, SETTLE_TIME):
        return Doing()
    return _outcome(answers, orders=len(orders))


def _outcome(answers: dict[str, Answered], *, orders: int) -> Finished:
    if not orders:
        return Finished("Unsupported", "no process of it can give cached memory back")
    if not answers:
        return Finished("NoAnswer", f"{orders} processes were asked and none has answered")
    results = {answer.result for answer in answers.values()}
    result = next((one for one in _RANK if one in results), "Failed")
    given = [answer.bytes for answer in answers.values() if answer.bytes is not None]
    total = sum(given) if given else None
    amount = "" if total is None else f", {show_bytes(total)} given back"
    return Finished(result, f"{len(answers)} of {orders} processes answered{amount}", total)

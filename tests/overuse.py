"""Pods that use GPU memory, as enforcement sees them, and a small world that answers it.

facts(used=9)                           9 GiB held of 8 allowed, by policy mode Enforce
World(...).run(trace)                   what happens to a pod over time, whoever leads
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from gpumem_operator.api.policy import Enforcement
from gpumem_operator.enforcement.decision import Decision, Record, decide
from gpumem_operator.enforcement.ending import Ending, most_seconds
from gpumem_operator.enforcement.facts import (
    Action,
    Answered,
    Condition,
    Facts,
    Hold,
    Target,
    Tried,
)
from gpumem_operator.enforcement.steps import Orders, Removal
from gpumem_operator.enforcement.tried import tried_so_far
from gpumem_operator.reports.pictures import Amount, Sender

GIB = 2**30
START = datetime(2026, 3, 1, tzinfo=UTC)
SHIMMED = Target(Sender("Sidecar", "pod-1"), "main", 7, 100)
LISTED = Target(Sender("NodeAgent", "gpu-1"), "main", 4007, 100)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def hold(used: float | None, *, limit: float = 8, container: str = "main", gpu: str = "g0") -> Hold:
    """GiB; None is unknown."""
    amount = Amount(None, "NotAvailable") if used is None else Amount(int(used * GIB))
    return Hold(container, gpu, int(limit * GIB), amount)


def settings(*actions: str, **fields: Any) -> Enforcement:
    return Enforcement.model_validate({"actions": list(actions or ("Reclaim", "Evict")), **fields})


def facts(*holds: Hold, used: float | None = 9, **fields: Any) -> Facts:
    base = Facts("pod-1", "Enforce", settings(), holds or (hold(used),), reclaimable=(SHIMMED,))
    return replace(base, **fields)


def condition(
    reason: str = "OverLimit", *, since: float = 0, began: float = 0, tried: Sequence[Action] = ()
) -> Condition:
    """As it is stored; where its reason is an action, with those that were tried before."""
    status = "False" if reason in ("WithinLimit", "NearLimit") else "True"
    message = f"It holds too much. {tried_so_far(tried)}."
    return Condition(status, reason, at(since), at(began), message)  # type: ignore[arg-type]


@dataclass
class World:
    """One pod, its sender and the API server. What a leader remembers is in `memory` alone."""

    facts: Facts = field(default_factory=facts)
    answer: str | None = "Done"
    """Of senders to orders; None: they never answer."""
    budget_opens: float = 0.0
    """From when on the Eviction API takes the pod away."""
    done: list[str] = field(default_factory=list)
    """What really happened, each once."""
    records: list[Record] = field(default_factory=list)
    carried_out: dict[str, float] = field(default_factory=dict)
    answers: dict[str, Answered] = field(default_factory=dict)
    tried: Tried | None = None

    def run(
        self, trace: Sequence[float | None], *, step: float = 5, restarts: Iterable[int] = ()
    ) -> World:
        """One decision for each amount in GiB; before those at `restarts`, the leader changes."""
        forgets = frozenset(restarts)
        for index, used in enumerate(trace):
            if index in forgets:
                self.answers, self.tried = {}, None
            self.look(used, index * step)
        return self

    def look(self, used: float | None, now: float) -> Decision:
        self.facts = replace(
            self.facts, holds=(hold(used),), answers=dict(self.answers), tried=self.tried
        )
        decision = decide(self.facts, at(now))
        if decision.condition is not None:
            self.facts = replace(self.facts, stored=decision.condition)
        self.records += decision.records
        if isinstance(decision.deed, Orders):
            self._order(decision.deed, now)
        elif isinstance(decision.deed, Removal):
            self._remove(decision.deed, now)
        return decision

    def _order(self, orders: Orders, now: float) -> None:
        for key, _ in orders.targets:
            if key not in self.carried_out:
                self.carried_out[key] = now
                self.done.append(orders.action)
            if self.answer is not None:
                self.answers[key] = Answered(self.answer, GIB, at(now))

    def _remove(self, removal: Removal, now: float) -> None:
        if removal.action == "Evict" and now < self.budget_opens:
            self.tried = Tried("BlockedByPDB", at(now))
            return
        self.done.append(removal.action)
        most = most_seconds(self.facts.settings)
        self.facts = replace(self.facts, ending=Ending(at(now + most), most))

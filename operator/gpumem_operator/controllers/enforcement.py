"""Acts on pods over their limits: gather, decide, store the condition, then do one thing.

Every few seconds all pods are looked at, those of a node as soon as a report shows one over its
limit, and from then on these twice a second and when their grace period ends: by what their nodes
report alone, so that it costs nothing where nobody is.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple

from gpumem_operator.controllers.about import about_pod
from gpumem_operator.controllers.alarms import Alarms
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.growing import GrowingPods
from gpumem_operator.controllers.overuse import (
    Gathering,
    Suspect,
    raw_condition,
    stored_condition,
)
from gpumem_operator.controllers.recent_actions import RecentActions
from gpumem_operator.controllers.removal import remove
from gpumem_operator.controllers.table import Key
from gpumem_operator.controllers.usage import UsageBoard
from gpumem_operator.controllers.worker import attempt, utc_now
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.enforcement.decision import Decision, Record, decide, grace_ends
from gpumem_operator.enforcement.facts import DELETING, EVICTING, Action, Condition, Tried
from gpumem_operator.enforcement.order_book import OrderBook
from gpumem_operator.enforcement.order_of_pods import Excess, full_cards, in_order
from gpumem_operator.enforcement.sentences import now_holds, taken_away
from gpumem_operator.enforcement.steps import Orders, Removal
from gpumem_operator.kube.errors import NotFound
from gpumem_operator.kube.resources import PODS
from gpumem_operator.metrics import growth
from gpumem_operator.metrics.enforcement import EnforcementSeries
from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.snapshot import Snapshot
from gpumem_operator.reports.uses import PodUse

FIELD_MANAGER: Final = "gpumem-enforcement"
"""Owner of the pod's condition, and of nothing else."""
SECONDS: Final = 0.5
"""Between two looks at pods over their limit; their senders report as often."""
_LEAST_SECONDS: Final = 0.05
"""Between two looks, however many reports and ends of grace periods ask for one."""


_REMOVALS: Final[Mapping[str, Action]] = MappingProxyType({EVICTING: "Evict", DELETING: "Delete"})


class _Watched(NamedTuple):
    """A pod over its limit."""

    node: str
    grace_ends: datetime


class EnforcementWorker:
    """Runs while this process leads. What it knows beside the conditions may be lost."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        *,
        board: UsageBoard,
        orders: OrderBook,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._cache = cache
        self._writer = writer
        self._board = board
        self._orders = orders
        self._now = now
        self._alarms = Alarms(writer, now)
        self._growing = GrowingPods(self._alarms)
        self._recent = RecentActions(cache, writer)
        self._series = EnforcementSeries()
        self._tried: dict[str, Tried] = {}
        self._watched: dict[str, _Watched] = {}
        """By uid."""
        self._heard: set[str] = set()
        """Nodes with a report that may show a pod over its limit."""
        self._snapshot: Snapshot | None = None
        """To be looked at."""
        self._full: frozenset[str] = frozenset()
        self._wake = asyncio.Event()

    def look(self, snapshot: Snapshot) -> None:
        """Judge all of its pods soon."""
        self._snapshot = snapshot
        self._wake.set()

    def hear(self, sender: Sender) -> bool:
        """A report came: where it may show a pod over its limit, its node is looked at soon.

        Whether the sender, which may not know of an excess, shall report every 500 ms."""
        if (node := self._board.node_of_excess(sender)) is not None:
            self._heard.add(node)
            self._wake.set()
        if sender.kind == "Sidecar":
            return sender.id in self._watched
        return any(one.node == sender.id for one in self._watched.values())

    async def run(self) -> None:
        try:
            while True:
                if not self._watched:
                    await self._wake.wait()
                await asyncio.sleep(self._rest())
                with attempt("enforcement", "one look"):
                    await self.reconcile()
        finally:
            growth.show(())
            self._series.end()

    def _rest(self) -> float:
        """Seconds until the next look, where there is anything to look at."""
        if not self._watched:
            return _LEAST_SECONDS
        now = self._now()
        left = ((one.grace_ends - now).total_seconds() for one in self._watched.values())
        return max(_LEAST_SECONDS, min([SECONDS, *(seconds for seconds in left if seconds > 0)]))

    async def reconcile(self) -> None:
        """One look: at everything where there is a new snapshot, else at those over their limit."""
        self._wake.clear()
        snapshot, self._snapshot = self._snapshot, None
        heard, self._heard = self._heard, set()
        over: defaultdict[Key, set[str]] | None = None
        if snapshot is not None:
            over = defaultdict(set)
            self._full = full_cards(snapshot.cards)
            self._forget(snapshot.pods.keys())
            uses: Iterable[PodUse] = [view.use for view in snapshot.pods.values()]
        else:
            found = self._board.uses_on(heard.union(one.node for one in self._watched.values()))
            uses = [
                use for uid, use in found.items() if uid in self._watched or use.pod.node in heard
            ]
        suspects = self._ordered(Gathering(self._cache, self._board).suspects(uses))
        # Where no policy decides any more, nobody has to be watched, and no order stands.
        for uid in self._watched.keys() - {suspect.facts.uid for suspect in suspects}:
            self._let_be(uid)
        for suspect in suspects:
            with attempt("enforcement", f"pod {suspect.title}"):
                await self._treat(suspect)
            if over is not None and _is_over(suspect) and suspect.decider.policy_name:
                pod = suspect.entry.measured
                over[pod.namespace, suspect.decider.policy_name].add(pod.name)
        await self._recent.write(over, self._now())
        if snapshot is not None:
            self._show(suspects)
            await self._growing.look(suspects)

    def _ordered(self, suspects: Iterable[Suspect]) -> list[Suspect]:
        by_uid = {suspect.facts.uid: suspect for suspect in suspects}
        excess = (
            Excess(
                uid, {hold.gpu: hold.excess_bytes for hold in suspect.facts.holds if hold.is_over}
            )
            for uid, suspect in by_uid.items()
        )
        return [by_uid[uid] for uid in in_order(excess, self._full)]

    async def _treat(self, suspect: Suspect) -> None:
        uid, now = suspect.facts.uid, self._now()
        self._recall(suspect, now)
        facts = suspect.facts.completed(
            answers=self._orders.answers(uid),
            tried=self._tried.get(uid),
            evictions_of_owner=self._recent.evictions_of(suspect, now),
        )
        decision = decide(facts, now)
        self._watch(suspect, decision.condition or facts.stored)
        if decision.condition is not None and not await self._store(suspect, decision.condition):
            return
        for record in decision.records:
            self._note(suspect, record)
        deed = decision.deed
        self._orders.give(uid, deed if isinstance(deed, Orders) else None)
        if isinstance(deed, Removal):
            await self._remove(suspect, deed)
        await self._tell(suspect, decision)

    def _recall(self, suspect: Suspect, now: datetime) -> None:
        """Tell of a pod that a leader before has taken away, where that one could not."""
        stored, uid = suspect.facts.stored, suspect.facts.uid
        action = _REMOVALS.get(stored.reason) if stored is not None else None
        if action is None or suspect.facts.ending is None or uid in self._tried:
            return
        self._tried[uid] = Tried("Done", now)
        if not self._recent.tells_of(suspect):
            message = "it was told to end while another leader did this"
            self._note(suspect, Record(action, "Done", message))

    def _watch(self, suspect: Suspect, condition: Condition | None) -> None:
        uid = suspect.facts.uid
        if condition is not None and condition.status == "True":
            ends = grace_ends(condition, suspect.facts.settings)
            self._watched[uid] = _Watched(suspect.entry.measured.node, ends)
            return
        self._let_be(uid)

    def _let_be(self, uid: str) -> None:
        self._watched.pop(uid, None)
        self._tried.pop(uid, None)
        self._orders.forget(uid)

    async def _store(self, suspect: Suspect, condition: Condition) -> bool:
        """Whether the pod still is there to be told about."""
        pod = suspect.entry.measured
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
            "status": {"conditions": [raw_condition(condition)]},
        }
        path = PODS.path(pod.name, namespace=pod.namespace, subresource="status")
        try:
            self._cache.pods.see(await self._writer.apply(path, body, manager=FIELD_MANAGER))
        except NotFound:
            self._let_be(pod.uid)
            return False
        return True

    async def _remove(self, suspect: Suspect, removal: Removal) -> None:
        uid, before = suspect.facts.uid, self._tried.get(suspect.facts.uid)
        outcome = await remove(self._writer, suspect.entry.measured, removal)
        self._tried[uid] = Tried(outcome.result, self._now(), outcome.message)
        if before is None or before.result != outcome.result:
            worst = suspect.facts.worst
            record = Record(
                removal.action,
                outcome.result,
                ". ".join(part for part in (now_holds(suspect.facts), outcome.message) if part),
                worst.limit_bytes if worst else None,
                worst.used.bytes if worst else None,
            )
            self._note(suspect, record)
            # At once: a leader that ends before the others were treated would lose it.
            await self._recent.write(None, self._now())
            if outcome.result != "Done":
                await self._warn(suspect, outcome.result, record.message)
            else:
                word = "Evicted" if removal.action == "Evict" else "Deleted"
                await self._warn(suspect, word, taken_away(record.message))

    def _note(self, suspect: Suspect, record: Record) -> None:
        self._recent.add(suspect, record, self._now())
        self._series.count(
            suspect.entry.measured.namespace,
            suspect.decider.policy_name or "",
            action=record.action,
            result=record.result,
        )

    def _show(self, suspects: Iterable[Suspect]) -> None:
        """How many pods are over their limits, and what is done about them."""
        self._series.keep(
            {key[1] for key, _ in self._cache.namespaces.rows()},
            {key for key, _ in self._cache.policies.rows()},
        )
        self._series.show(
            (
                suspect.entry.measured.namespace,
                suspect.decider.policy_name or "",
                self._stage(suspect),
            )
            for suspect in suspects
            if suspect.facts.uid in self._watched
        )

    def _stage(self, suspect: Suspect) -> str:
        """The reason of its condition, or what keeps it from being evicted."""
        tried = self._tried.get(suspect.facts.uid)
        if tried is not None and tried.result != "Done":
            return tried.result
        stored = stored_condition(self._board.entry(suspect.facts.uid) or suspect.entry)
        return stored.reason if stored else ""

    async def _tell(self, suspect: Suspect, decision: Decision) -> None:
        if decision.event and decision.condition is not None:
            await self._warn(suspect, decision.event, decision.condition.message)

    async def _warn(self, suspect: Suspect, reason: str, message: str) -> None:
        text = f"{message} ({suspect.decider.title})"
        await self._alarms.tell(about_pod(suspect.entry.measured), kind=reason, message=text)

    def _forget(self, uids: Iterable[str]) -> None:
        kept = set(uids)
        self._orders.keep(kept)
        self._tried = {uid: tried for uid, tried in self._tried.items() if uid in kept}


def _is_over(suspect: Suspect) -> bool:
    return any(hold.is_over for hold in suspect.facts.holds)

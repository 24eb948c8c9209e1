"""What is known of GPU memory, for everything that tells about it: joined from cache and reports.

Answers to senders need one pod or one node; the rest asks for a snapshot of everything, which is
made at most once a second however many ask.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from gpumem_operator.admission.decider import decide
from gpumem_operator.api.records import TenantRecord
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.entries import PodEntry
from gpumem_operator.controllers.options import Periods
from gpumem_operator.controllers.table import Key
from gpumem_operator.controllers.worker import attempt, timestamp, utc_now
from gpumem_operator.enforcement.judged import may_show_excess
from gpumem_operator.ledger.charge import rates_of
from gpumem_operator.reports.attribution import attribute
from gpumem_operator.reports.cap_hits import CapHits
from gpumem_operator.reports.counters import ByteSeconds, Entry
from gpumem_operator.reports.document import usage_document
from gpumem_operator.reports.freshness import why_stale
from gpumem_operator.reports.measured import MeasuredPod
from gpumem_operator.reports.others import others_of
from gpumem_operator.reports.pictures import Picture, Sender
from gpumem_operator.reports.report import Limit
from gpumem_operator.reports.snapshot import PodView, Snapshot, view_of
from gpumem_operator.reports.store import Store
from gpumem_operator.reports.tenant_view import TenantView, tenant_view
from gpumem_operator.reports.tenants_document import tenants_document
from gpumem_operator.reports.uses import PodUse

_SNAPSHOT_SECONDS: Final = 1.0
_PIECE: Final = 200


class UsageBoard:
    """The leader's knowledge of GPU memory. A new leader begins with none."""

    def __init__(
        self,
        cache: Cache,
        *,
        values: Values,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = Store()
        self._cache = cache
        self._values = values
        self._monotonic = monotonic
        self._counters = ByteSeconds()
        self._cap_hits = CapHits()
        self._snapshot = Snapshot()
        self._made = float("-inf")
        self._keys_by_uid: dict[str, Key] = {}
        self._seen_since: dict[str, float] = {}
        """By uid of each pod, on the clock by which pictures are taken in."""
        self._running_since: dict[str, float] = {}
        """The same of each pod that was seen started."""
        self._keys_by_node: defaultdict[str, set[Key]] = defaultdict(set)
        for key, row in cache.pods.rows():
            self._follow(key, None, row.value)
        cache.pods.listeners.append(self._follow)

    def _follow(self, key: Key, old: PodEntry | None, new: PodEntry | None) -> None:
        if old is not None:
            self._keys_by_uid.pop(old.uid, None)
            if new is None or new.uid != old.uid:
                self._seen_since.pop(old.uid, None)
                self._running_since.pop(old.uid, None)
            self._keys_by_node[old.node].discard(key)
            if not self._keys_by_node[old.node]:
                del self._keys_by_node[old.node]
        if new is not None and new.gpu and not new.finished:
            self._keys_by_uid[new.uid] = key
            self._seen_since.setdefault(new.uid, self._monotonic())
            if new.started:
                self._running_since.setdefault(new.uid, self._monotonic())
            self._keys_by_node[new.node].add(key)

    async def prepare(self) -> None:
        """Work out what each look needs of a pod and is kept with it, letting others go on between:
        for ten thousand pods at once takes seconds, in which no lease is renewed."""
        for number, (_, row) in enumerate(list(self._cache.pods.rows()), start=1):
            self._charges(row.value, self._tenants_of(row.value.measured.namespace))
            if number % _PIECE == 0:
                await asyncio.sleep(0)

    def measures(self, sender: Sender) -> bool:
        """Whether pods with GPUs are the sender's: any pod may have a token and report."""
        if sender.kind == "NodeAgent":
            return True
        entry = self.entry(sender.id)
        return entry is not None and entry.measured.may_report

    def expects(self, sender: Sender) -> bool:
        """Whether the cluster has such a node, or such a pod with GPUs."""
        return not self._is_gone(sender)

    def why_refused(self, sender: Sender) -> str | None:
        """Why a sender is not heard: what has a pod's token is not always a sidecar of ours."""
        entry = self.entry(sender.id) if sender.kind == "Sidecar" else None
        if entry is None or entry.measured.has_sidecar:
            return None
        return "the pod has no sidecar of the operator, so nothing in it reports"

    def limits_of(self, sender: Sender) -> list[Limit]:
        """What the containers of the sender's pods may hold, per GPU."""
        if sender.kind == "NodeAgent":
            keys: Iterable[Key] = self._keys_by_node.get(sender.id, ())
        else:
            keys = filter(None, [self._keys_by_uid.get(sender.id)])
        rows = filter(None, (self._cache.pods.get(key) for key in keys))
        return [limit for row in rows for limit in row.value.limits]

    def node_of_excess(self, sender: Sender) -> str | None:
        """The node of a sender whose last picture may show a container over its limit."""
        picture = self.store.picture(sender)
        if picture is None or not may_show_excess(picture, self.limits_of(sender)):
            return None
        if sender.kind == "NodeAgent":
            return sender.id
        entry = self.entry(sender.id)
        return entry.measured.node if entry else None

    def snapshot(self) -> Snapshot:
        """Everything; at most a second old."""
        now = self._monotonic()
        if now - self._made >= _SNAPSHOT_SECONDS:
            self._snapshot = self._make(now)
            self._made = now
        return self._snapshot

    def uses_on(self, nodes: Iterable[str]) -> Mapping[str, PodUse]:
        """By uid, what the pods of some nodes hold now. It costs as much as these have pods."""
        pods: list[MeasuredPod] = []
        senders: list[Sender] = []
        for node in nodes:
            senders.append(Sender("NodeAgent", node))
            for key in self._keys_by_node.get(node, ()):
                if row := self._cache.pods.get(key):
                    pods.append(row.value.measured)
                    senders.append(Sender("Sidecar", row.uid))
        found = ((sender, self.store.picture(sender)) for sender in senders)
        pictures = {sender: picture for sender, picture in found if picture is not None}
        now = self._monotonic()
        return attribute(
            pods, pictures, now, since=self._seen_since, running=self._running_since
        ).pods

    def age_of(self, sender: Sender) -> float:
        """Seconds since the sender last looked, as far as it told; infinite where it never has."""
        picture = self.store.picture(sender)
        return float("inf") if picture is None else self._monotonic() - picture.sampled

    def entry(self, uid: str) -> PodEntry | None:
        """A GPU pod that has not finished."""
        row = self._cache.pods.get(self._keys_by_uid.get(uid, ("", "")))
        return row.value if row and row.uid == uid else None

    def document(self, namespace: str, pod: str) -> dict[str, Any]:
        """A snapshot as JSON; of one namespace or pod where they are not empty."""
        now = timestamp(utc_now())
        return usage_document(self.snapshot(), now=now, namespace=namespace, pod=pod)

    def tenants_document(self, tenant: str) -> dict[str, Any]:
        """Tenants as JSON, or one of them with its pods where it is not empty."""
        return tenants_document(self.snapshot(), now=timestamp(utc_now()), tenant=tenant)

    def driver_limits(self) -> Mapping[str, bool]:
        """By node, whether the driver can limit containers there, as fresh agents say."""
        return {
            sender.id: picture.driver_limits
            for sender, picture in self._fresh_pictures(self._monotonic()).items()
            if sender.kind == "NodeAgent" and picture.driver_limits is not None
        }

    def _fresh_pictures(self, now: float) -> Mapping[Sender, Picture]:
        pictures = self.store.pictures().items()
        return {who: one for who, one in pictures if why_stale(one, now) is None}

    def advance(self) -> Snapshot:
        """Count the time since the last call, and drop what is known of what is gone."""
        snapshot = self.snapshot()
        now = self._monotonic()
        self._counters.advance(
            (entry for view in snapshot.pods.values() for entry in _entries(view)), now
        )
        self._counters.keep(key[1] for key, _ in self._cache.namespaces.rows())
        self._cap_hits.advance(view.use for view in snapshot.pods.values())
        self._cap_hits.keep(snapshot.pods)
        self.store.forget(self._is_gone, now)
        return snapshot

    def _is_gone(self, sender: Sender) -> bool:
        if sender.kind == "NodeAgent":
            return self._cache.nodes.get(("", sender.id)) is None
        return sender.id not in self._keys_by_uid

    def _make(self, now: float) -> Snapshot:
        entries = {
            row.uid: row.value
            for _, row in self._cache.pods.rows()
            if row.value.gpu and not row.value.finished
        }
        usage = attribute(
            (entry.measured for entry in entries.values()),
            self.store.pictures(),
            now,
            by_agent=self._by_agent(entries),
            since=self._seen_since,
            running=self._running_since,
        )
        pods = {uid: self._view(entries[uid], use) for uid, use in usage.pods.items()}
        return Snapshot(
            pods,
            usage.cards,
            self._counters.totals,
            self._tenants(),
            self._cap_hits.totals,
            others_of(self._fresh_pictures(now), entries.keys()),
        )

    def _by_agent(self, entries: Mapping[str, PodEntry]) -> frozenset[str]:
        """Uids of the pods that nobody but an agent shall measure."""
        alone = [entry for entry in entries.values() if not entry.measured.has_sidecar]
        surroundings = {
            namespace: self._cache.surroundings(namespace)
            for namespace in {entry.measured.namespace for entry in alone}
        }
        deciders = (
            (entry.measured, decide(entry.labels, surroundings[entry.measured.namespace]))
            for entry in alone
        )
        return frozenset(
            pod.uid
            for pod, decider in deciders
            if decider is not None and decider.monitoring(self._values) == "NodeAgent"
        )

    def _view(self, entry: PodEntry, use: PodUse) -> PodView:
        amounts = self._charges(entry, self._tenants_of(use.pod.namespace))
        return view_of(
            use,
            declared_bytes=entry.charge(),
            charges=amounts if entry.charged else dict.fromkeys(amounts, 0),
            queued={} if entry.charged else amounts,
        )

    def _tenants_of(self, namespace: str) -> Iterable[TenantRecord]:
        return self._cache.memberships.by_namespace.get(namespace, ())

    def _tenants(self) -> tuple[TenantView, ...]:
        entries = {key[1]: row.value for key, row in self._cache.tenants.rows()}
        places = self._cache.memberships
        return tuple(
            tenant_view(entry.record, places, status=entry.status)
            for _, entry in sorted(entries.items())
        )

    def _charges(
        self, entry: PodEntry, tenants: Iterable[TenantRecord]
    ) -> Mapping[str, int | None]:
        return {
            tenant.name: entry.charge(rates_of(tenant.spec.quota, self._values))
            for tenant in tenants
            if tenant.spec is not None
        }


def _entries(view: PodView) -> Iterable[Entry]:
    pod = view.use.pod
    charges = view.charges or {"": view.declared_bytes}
    for tenant, charged in charges.items():
        yield Entry((tenant, pod.namespace), charged, view.used_bytes, pod.started)


class UsageWorker:
    """Looks at everything every few seconds, and says which namespaces look different."""

    def __init__(
        self, board: UsageBoard, *, changed: Callable[[Snapshot], None], periods: Periods
    ) -> None:
        self._board = board
        self._changed = changed
        self._periods = periods

    async def run(self) -> None:
        with attempt("usage", "preparing the first look"):
            await self._board.prepare()
        while True:
            with attempt("usage", "one look"):
                self._changed(self._board.advance())
            await asyncio.sleep(self._periods.usage)

"""Statuses of policies and tenants: computed from the cache, written where they differ."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.admission.policy_status import (
    PolicyPod,
    PolicySurroundings,
    policy_status,
)
from gpumem_operator.api.conditions import (
    MEASUREMENT_UNAVAILABLE,
    UNREADABLE,
    USING_MORE_THAN_CHARGED,
    WITHIN_QUOTA,
)
from gpumem_operator.api.measure import Measure
from gpumem_operator.api.records import PolicyRecord
from gpumem_operator.api.stored_status import differs
from gpumem_operator.api.transitions import condition
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.about import about_policy, about_tenant
from gpumem_operator.controllers.alarms import Alarms, turned
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.charged_pods import charged_pods
from gpumem_operator.controllers.entries import PodEntry, PolicyEntry, TenantEntry
from gpumem_operator.controllers.inbox import Inbox
from gpumem_operator.controllers.options import Periods
from gpumem_operator.controllers.table import Key
from gpumem_operator.controllers.worker import attempt, timestamp, utc_now
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.resources import POLICIES, TENANTS
from gpumem_operator.ledger.node_enforcers import AbleNodes
from gpumem_operator.ledger.tenant_status import tenant_status
from gpumem_operator.metrics.controller import RECONCILE_SECONDS, SLIPPED_PODS
from gpumem_operator.reports.reasons import NO_REPORT
from gpumem_operator.reports.snapshot import Snapshot

_NO_NAMESPACE: Final = ""
"""In the inbox: a tenant changed."""
_BAD: Final = {USING_MORE_THAN_CHARGED: "True", WITHIN_QUOTA: "False"}
"""Conditions of tenants that an event tells of when they come to this status."""
_BY_LEADER_ALONE: Final = frozenset({"chargedBytes", "observedGeneration"})
"""What webhooks give room away by: stored by a leader alone that has listed the pods."""


class StatusWorker:
    """Keeps all statuses right while this process leads."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        *,
        values: Values,
        periods: Periods,
        epoch: Callable[[], int | None],
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """`epoch` is this leader's; None as long as it has not counted the pods under it."""
        self._cache = cache
        self._writer = writer
        self._values = values
        self._periods = periods
        self._epoch = epoch
        self._now = now
        self._alarms = Alarms(writer, now)
        self._measured = Snapshot()
        """What is told about use. It is replaced every few seconds and not with each report, so
        that no status is written more often for its sake."""
        self._nodes: AbleNodes | None = None
        self._summaries: Mapping[str, Hashable] = {}
        self._changed: Inbox[str] = Inbox()
        for table in (cache.pods, cache.policies):
            table.listeners.append(lambda key, _, __: self._changed.add(key[0]))
        cache.namespaces.listeners.append(lambda key, _, __: self._changed.add(key[1]))
        cache.tenants.listeners.append(lambda _, __, ___: self._changed.add(_NO_NAMESPACE))

    def look_at_everything(self) -> None:
        """Compute every status again, as if everything had changed."""
        self._changed.add(_NO_NAMESPACE, *(key[0] for key, _ in self._cache.policies.rows()))

    def look_at_use(self, snapshot: Snapshot) -> None:
        """Tell about this snapshot from now on; namespaces in which it differs are looked at."""
        before, self._summaries = self._summaries, summaries(snapshot)
        self._measured = snapshot
        places = before.keys() | self._summaries.keys()
        self._changed.add(*(p for p in places if before.get(p) != self._summaries.get(p)))

    def look_at_nodes(self, nodes: AbleNodes) -> None:
        """Tell of these numbers from now on, where a policy asks something of nodes."""
        if nodes != self._nodes:
            self._nodes = nodes
            self._changed.add(*(key[0] for key, _ in self._cache.policies.rows()))

    async def run(self) -> None:
        self.look_at_everything()
        while True:
            namespaces = await self._changed.take(settle=self._periods.settle)
            with RECONCILE_SECONDS.labels("status").time():
                failed = await self.reconcile(namespaces)
            self._changed.add(*failed)
            if any(not overtaken for overtaken in failed.values()):
                await asyncio.sleep(self._periods.retry)

    async def reconcile(self, namespaces: Iterable[str]) -> dict[str, bool]:
        """Bring the statuses up to date that depend on these namespaces.

        Returns which of them to do again, and of each whether it was merely overtaken.
        """
        failed: dict[str, bool] = {}
        for namespace in sorted(namespaces):
            surroundings = self._surroundings(namespace)
            for entry in self._cache.policies_of(namespace):
                with attempt("status", f"policy {namespace}/{entry.record.name}") as outcome:
                    await self._reconcile_policy(entry, surroundings)
                if outcome.failed:
                    failed[namespace] = failed.get(namespace, True) and outcome.overtaken
        # Any namespace may have come to a tenant, or gone; sums are cheap, charges are kept.
        for _, row in list(self._cache.tenants.rows()):
            with attempt("status", f"tenant {row.value.record.name}") as outcome:
                await self._reconcile_tenant(row.value)
            if outcome.failed:
                failed[_NO_NAMESPACE] = failed.get(_NO_NAMESPACE, True) and outcome.overtaken
        SLIPPED_PODS.set(
            sum(
                row.value.gpu and not row.value.handled and not row.value.finished
                for _, row in self._cache.pods.rows()
            )
        )
        return failed

    def _surroundings(self, namespace: str) -> PolicySurroundings:
        return PolicySurroundings(
            policies=tuple(entry.record for entry in self._cache.policies_of(namespace)),
            pods=tuple(
                _policy_pod(pod, self._measure(pod))
                for pod in self._cache.pods_of(namespace)
                if pod.gpu and not pod.finished
            ),
            nodes=self._nodes,
            values=self._values,
        )

    async def _reconcile_policy(self, entry: PolicyEntry, surroundings: PolicySurroundings) -> None:
        record = entry.record
        key = (record.namespace, record.name)
        wanted = policy_status(
            record, surroundings, current=entry.status, now=timestamp(self._now())
        )
        row = self._cache.policies.get(key)
        if row is not None and row.value is entry and differs(entry.status, wanted):
            path = POLICIES.path(key[1], namespace=key[0], subresource="status")
            await self._writer.store_status(path, row.version, wanted)
            await self._warn(record, entry.status, wanted)

    async def _reconcile_tenant(self, entry: TenantEntry) -> None:
        record = entry.record
        wanted = tenant_status(
            record,
            tuple(charged_pods(self._cache, self._values, record, measure=self._measure)),
            current=entry.status,
            now=timestamp(self._now()),
            shared=self._cache.memberships.shared(record.name),
            not_isolated=self._cache.memberships.not_isolated(record.name),
            namespaces=len(self._cache.memberships.by_tenant.get(record.name, ())),
        )
        if not self._counts(entry):
            wanted = {key: value for key, value in wanted.items() if key not in _BY_LEADER_ALONE}
        key: Key = ("", record.name)
        row = self._cache.tenants.get(key)
        if row is not None and row.value is entry and differs(entry.status, wanted):
            path = TENANTS.path(record.name, subresource="status")
            await self._writer.store_status(path, row.version, wanted)
            for kind, bad in _BAD.items():
                if turned(entry.status, wanted, kind, bad):
                    await self._tell(about_tenant(record), condition(wanted, kind))

    def _counts(self, entry: TenantEntry) -> bool:
        """Whether a charge may be stored: webhooks give room away by what is written here.

        Where the epoch is another one, pods that another leader has charged may be missing.
        """
        epoch = self._epoch()
        return epoch is not None and entry.status.get("epoch") == epoch

    def _measure(self, pod: PodEntry) -> Measure:
        view = self._measured.pods.get(pod.measured.uid)
        if view is None:
            return Measure(None, NO_REPORT, pod.measured.started, "unknown")
        return view.measure

    async def _warn(
        self, policy: PolicyRecord, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> None:
        """One event when measurement breaks off; none where a new leader has yet to hear of it."""
        then, now = (condition(status, MEASUREMENT_UNAVAILABLE) for status in (before, after))
        if now.get("reason") != UNREADABLE or then.get("reason") == UNREADABLE:
            return
        if not self._alarms.hears_of_all:
            return
        await self._tell(about_policy(policy), now)

    async def _tell(self, about: Mapping[str, Any], bad: Mapping[str, Any]) -> None:
        """Of a condition that turned bad: its type may be the name of what was good."""
        reason, message = str(bad.get("reason")), str(bad.get("message"))
        await self._alarms.tell(about, kind=reason, message=message)


def summaries(snapshot: Snapshot) -> Mapping[str, Hashable]:
    """By namespace, what statuses tell of its pods; equal where they tell the same."""
    found: defaultdict[str, set[Hashable]] = defaultdict(set)
    for uid, view in snapshot.pods.items():
        found[view.use.pod.namespace].add((uid, view.measure))
    return {namespace: frozenset(facts) for namespace, facts in found.items()}


def _policy_pod(entry: PodEntry, measure: Measure) -> PolicyPod:
    return PolicyPod(
        labels=entry.labels,
        handled=entry.handled,
        policy=entry.labels.get(names.POLICY_LABEL, ""),
        policy_hash=entry.annotations.get(names.POLICY_HASH_ANNOTATION, ""),
        declared_bytes=entry.charge(),
        measure=measure,
    )

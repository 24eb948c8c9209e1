"""Statuses of policies and tenants: computed from the cache, written where they differ."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.admission.policy_status import (
    PolicyPod,
    PolicySurroundings,
    policy_status,
)
from gpumem_operator.api.records import TenantRecord
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.entries import PodEntry, PolicyEntry, TenantEntry
from gpumem_operator.controllers.inbox import Inbox
from gpumem_operator.controllers.options import Periods
from gpumem_operator.controllers.table import Key
from gpumem_operator.controllers.worker import attempt, timestamp, utc_now
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.resources import POLICIES, TENANTS
from gpumem_operator.ledger.charge import rates_of
from gpumem_operator.ledger.tenant_status import ChargedPod, tenant_status
from gpumem_operator.metrics.controller import RECONCILE_SECONDS, SLIPPED_PODS

_NO_NAMESPACE: Final = ""
"""In the inbox: a tenant changed."""


class StatusWorker:
    """Keeps all statuses right while this process leads."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        *,
        values: Values,
        periods: Periods,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._cache = cache
        self._writer = writer
        self._values = values
        self._periods = periods
        self._now = now
        self._changed: Inbox[str] = Inbox()
        for table in (cache.pods, cache.policies):
            table.listeners.append(lambda key, _, __: self._changed.add(key[0]))
        cache.namespaces.listeners.append(lambda key, _, __: self._changed.add(key[1]))
        cache.tenants.listeners.append(lambda _, __, ___: self._changed.add(_NO_NAMESPACE))

    def look_at_everything(self) -> None:
        """Compute every status again, as if everything had changed."""
        self._changed.add(_NO_NAMESPACE, *(key[0] for key, _ in self._cache.policies.rows()))

    async def run(self) -> None:
        self.look_at_everything()
        while True:
            namespaces = await self._changed.take(settle=self._periods.settle)
            with RECONCILE_SECONDS.labels("status").time():
                failed = await self._reconcile(namespaces)
            self._changed.add(*failed)
            if any(not overtaken for overtaken in failed.values()):
                await asyncio.sleep(self._periods.retry)

    async def _reconcile(self, namespaces: Iterable[str]) -> dict[str, bool]:
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
                _policy_pod(pod)
                for pod in self._cache.pods_of(namespace)
                if pod.gpu and not pod.finished
            ),
        )

    async def _reconcile_policy(self, entry: PolicyEntry, surroundings: PolicySurroundings) -> None:
        record = entry.record
        key = (record.namespace, record.name)
        wanted = policy_status(
            record, surroundings, current=entry.status, now=timestamp(self._now())
        )
        row = self._cache.policies.get(key)
        if row is not None and row.value is entry and _differs(entry.status, wanted):
            path = POLICIES.path(key[1], namespace=key[0], subresource="status")
            await self._write(path, row.version, wanted)

    async def _reconcile_tenant(self, entry: TenantEntry) -> None:
        record = entry.record
        wanted = tenant_status(
            record,
            tuple(self._charged_pods(record)),
            current=entry.status,
            now=timestamp(self._now()),
        )
        key: Key = ("", record.name)
        row = self._cache.tenants.get(key)
        if row is not None and row.value is entry and _differs(entry.status, wanted):
            await self._write(TENANTS.path(record.name, subresource="status"), row.version, wanted)

    def _charged_pods(self, tenant: TenantRecord) -> Iterable[ChargedPod]:
        if tenant.spec is None:
            return
        rates = rates_of(tenant.spec.quota, self._values)
        for _, namespace in self._cache.namespaces.rows():
            if not tenant.spec.namespace_selector.matches(namespace.value.labels):
                continue
            for pod in self._cache.pods_of(namespace.value.name):
                if pod.gpu and pod.charged:
                    metadata = pod.pod["metadata"]
                    yield ChargedPod(metadata["namespace"], metadata["name"], pod.charge(rates))

    async def _write(self, path: str, version: int, status: Mapping[str, Any]) -> None:
        # With the version that was read: the list of conditions is replaced as a whole.
        body = {"metadata": {"resourceVersion": str(version)}, "status": dict(status)}
        await self._writer.merge(path, body)


def _policy_pod(entry: PodEntry) -> PolicyPod:
    return PolicyPod(
        labels=entry.labels,
        handled=entry.handled,
        policy=entry.labels.get(names.POLICY_LABEL, ""),
        policy_hash=entry.annotations.get(names.POLICY_HASH_ANNOTATION, ""),
        declared_bytes=entry.charge(),
    )


def _differs(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether the fields of `wanted` are stored otherwise; an absent list is an empty one."""
    return any(
        stored.get(key, [] if isinstance(value, list) else None) != value
        for key, value in wanted.items()
    )

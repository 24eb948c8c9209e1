"""What makes the leader look at a pod between its looks at everything."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controllers.recording import Leads
from controllers.stored import Raw, managed_pod, policy, sealed
from gpumem_operator.api.seal import Seal
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.enforcement import EnforcementWorker
from gpumem_operator.controllers.usage import UsageBoard
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.enforcement.order_book import OrderBook
from gpumem_operator.kube.api import Api
from gpumem_operator.reports.pictures import Sender
from report_builders import GIB, process, report

SEAL = Seal(b"k" * 32)
NAMESPACE: Raw = {"metadata": {"name": "team", "uid": "ns", "resourceVersion": "1"}}


class Cluster(Api):
    """Stores conditions and takes evictions."""

    def __init__(self, pod: Raw) -> None:
        self.pod = pod
        self.done: list[str] = []

    async def request(self, method: str, path: str, **fields: Any) -> Raw:  # noqa: ARG002
        body = fields["body"]
        if path.endswith("/status") and "/pods/" in path:
            conditions = body["status"]["conditions"]
            version = str(int(self.pod["metadata"]["resourceVersion"]) + 1)
            metadata = self.pod["metadata"] | {"resourceVersion": version}
            status = self.pod["status"] | {"conditions": conditions}
            self.pod = self.pod | {"metadata": metadata, "status": status}
            self.done.append(conditions[0]["reason"])
            return self.pod
        if path.endswith("/eviction"):
            self.done.append("evicted")
        return dict(body)


class Stage:
    """A leader's worker with one pod of a policy that evicts after a minute."""

    def __init__(self) -> None:
        self.cache = Cache(Values(), own_namespace="gpumem-system")
        self.cache.seal = SEAL
        self.cache.namespaces.see(NAMESPACE)
        enforcement = {"mode": "Enforce", "actions": ["Evict"], "gracePeriodSeconds": 60}
        self.cache.policies.see(policy(selector={}, enforcement=enforcement))
        pod = managed_pod("train", policy="training", limit_bytes=8 * GIB, phase="Running")
        pod["spec"] |= {"nodeName": "gpu-1", "initContainers": [{"name": "gpumem-sidecar"}]}
        pod = sealed(pod, SEAL)
        self.cache.pods.see(pod)
        self.cluster = Cluster(pod)
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)
        self.board = UsageBoard(self.cache, values=Values(), monotonic=self._monotonic)
        self.worker = EnforcementWorker(
            self.cache,
            Writer(self.cluster, Leads()),
            board=self.board,
            orders=OrderBook(),
            now=lambda: self.now,
        )
        self._uid = pod["metadata"]["uid"]
        self._sequence = 0

    def _monotonic(self) -> float:
        return self.now.timestamp()

    async def hears(self, gib: int, *, after: float = 0.5) -> list[str]:
        """What one look did, after a report and without a snapshot of everything."""
        self.now += timedelta(seconds=after)
        self.cluster.done.clear()
        self._sequence += 1
        sender = Sender("Sidecar", self._uid)
        told = report(process(gib * GIB, pod=self._uid), sequence=self._sequence)
        self.board.store.take(sender, told, self._monotonic())
        self.worker.hear(sender)
        await self.worker.reconcile()
        return list(self.cluster.done)


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_the_grace_period_begins_with_the_report_that_shows_the_excess(stage: Stage) -> None:
    assert await stage.hears(7) == [], "inside its limit, it waits for the look at everything"
    assert await stage.hears(9) == ["OverLimit"]
    assert await stage.hears(9, after=59) == []
    assert await stage.hears(9, after=1) == ["Evicting", "evicted"]


async def test_a_pod_that_falls_to_its_limit_is_told_so_without_another_excess(
    stage: Stage,
) -> None:
    await stage.hears(9)
    assert await stage.hears(4) == ["WithinLimit"]
    assert await stage.hears(9) == ["OverLimit"], "and the grace period begins anew"

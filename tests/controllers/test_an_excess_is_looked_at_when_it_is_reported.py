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
    """Stores conditions and lines of a policy, and takes evictions."""

    def __init__(self) -> None:
        self.pods: dict[str, Raw] = {}
        self.done: list[str] = []
        self._version = 1

    async def request(self, method: str, path: str, **fields: Any) -> Raw:  # noqa: ARG002
        body = fields["body"]
        if path.endswith("/status") and "/pods/" in path:
            conditions = body["status"]["conditions"]
            pod = self.pods[body["metadata"]["name"]]
            version = str(int(pod["metadata"]["resourceVersion"]) + 1)
            metadata = pod["metadata"] | {"resourceVersion": version}
            status = pod["status"] | {"conditions": conditions}
            self.pods[metadata["name"]] = pod | {"metadata": metadata, "status": status}
            self.done.append(conditions[0]["reason"])
            return self.pods[metadata["name"]]
        if path.endswith("/eviction"):
            self.done.append("evicted")
        if lines := body.get("status", {}).get("recentActions"):
            self.done.append(" ".join(["told", *(line["pod"] for line in lines)]))
            return self.policy(lines)
        return dict(body)

    def policy(self, lines: list[Raw]) -> Raw:
        """The next version of it, with these recent actions."""
        self._version += 1
        raw = policy(selector={}, enforcement=ENFORCE)
        raw["metadata"]["resourceVersion"] = str(self._version)
        return raw | {"status": {"recentActions": lines}}


ENFORCE: Raw = {"mode": "Enforce", "actions": ["Evict"], "gracePeriodSeconds": 60}


class Stage:
    """A leader's worker with pods of a policy that evicts after a minute."""

    def __init__(self) -> None:
        self.cache = Cache(Values(), own_namespace="gpumem-system")
        self.cache.seal = SEAL
        self.cache.namespaces.see(NAMESPACE)
        self.cache.policies.see(policy(selector={}, enforcement=ENFORCE))
        self.cluster = Cluster()
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)
        self.board = UsageBoard(self.cache, values=Values(), monotonic=self._monotonic)
        self.has_pod("train")
        self.leads()
        self._sequence = 0

    def leads(self) -> None:
        """A leader begins, without a memory."""
        self.worker = EnforcementWorker(
            self.cache,
            Writer(self.cluster, Leads()),
            board=self.board,
            orders=OrderBook(),
            now=lambda: self.now,
        )

    def has_pod(self, name: str) -> None:
        pod = managed_pod(name, policy="training", limit_bytes=8 * GIB, phase="Running")
        pod["spec"] |= {"nodeName": "gpu-1", "initContainers": [{"name": "gpumem-sidecar"}]}
        self.cluster.pods[name] = sealed(pod, SEAL)
        self.cache.pods.see(self.cluster.pods[name])

    def ends(self, name: str) -> None:
        """The API server has told the pod to end."""
        pod = self.cluster.pods[name]
        ending = {"deletionTimestamp": (self.now + timedelta(seconds=30)).isoformat()}
        version = {"resourceVersion": str(int(pod["metadata"]["resourceVersion"]) + 1)}
        metadata = pod["metadata"] | ending | version | {"deletionGracePeriodSeconds": 30}
        self.cluster.pods[name] = pod | {"metadata": metadata}
        self.cache.pods.see(self.cluster.pods[name])

    def _monotonic(self) -> float:
        return self.now.timestamp()

    async def hears(self, gib: int, *, after: float = 0.5) -> list[str]:
        """What one look did, after a report and without a snapshot of everything."""
        self.now += timedelta(seconds=after)
        self.cluster.done.clear()
        self._sequence += 1
        for pod in self.cluster.pods.values():
            uid = pod["metadata"]["uid"]
            sender = Sender("Sidecar", uid)
            told = report(process(gib * GIB, pod=uid), sequence=self._sequence)
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
    assert await stage.hears(9, after=1) == ["Evicting", "evicted", "told train"]


async def test_a_pod_that_falls_to_its_limit_is_told_so_without_another_excess(
    stage: Stage,
) -> None:
    await stage.hears(9)
    assert await stage.hears(4) == ["WithinLimit"]
    assert await stage.hears(9) == ["OverLimit"], "and the grace period begins anew"


async def test_an_eviction_is_told_before_the_next_pod_is_treated(stage: Stage) -> None:
    stage.has_pod("other")
    await stage.hears(9)
    done = await stage.hears(9, after=61)
    evictions = [index for index, what in enumerate(done) if what == "evicted"]
    assert len(evictions) == 2
    assert [done[index + 1].split()[0] for index in evictions] == ["told", "told"]


async def test_an_eviction_that_the_leader_did_not_live_to_tell_is_told_by_the_next(
    stage: Stage,
) -> None:
    await stage.hears(9)
    stage.now += timedelta(seconds=60)
    await stage.hears(9)
    stage.cache.policies.see(stage.cluster.policy([]))
    stage.ends("train")
    stage.leads()
    assert await stage.hears(9) == ["told train"]
    assert await stage.hears(9) == []
    stage.leads()
    assert await stage.hears(9) == [], "it stands there by now"


async def test_without_its_policy_nothing_is_said_of_a_pod_any_more(stage: Stage) -> None:
    await stage.hears(9)
    stage.cache.policies.drop(("team", "training"), "uid-of-training")
    assert await stage.hears(9) == ["NotJudged"]
    assert await stage.hears(9) == []

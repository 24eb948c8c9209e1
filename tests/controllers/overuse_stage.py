"""A leader's worker for overuse, with the little of a cluster that it writes to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from controllers.recording import Leads
from controllers.stored import Raw, managed_pod, policy, sealed
from gpumem_operator import names
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

    def __init__(self, enforcement: Raw) -> None:
        self.pods: dict[str, Raw] = {}
        self.done: list[str] = []
        self._enforcement = enforcement
        self.generation = 1
        self.status: Raw = {}
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
        if "/gpumemorypolicies/" in path:
            self.status |= body["status"]
            for one in body["status"].get("conditions") or ():
                self.done.append(f"{one['type']}={one['status']} of {one['observedGeneration']}")
            if lines := body["status"].get("recentActions"):
                self.done.append(" ".join(["told", *(line["pod"] for line in lines)]))
            return self.policy(self.status)
        return dict(body)

    def policy(self, status: Raw) -> Raw:
        """The next version of it."""
        self._version += 1
        raw = policy(selector={}, enforcement=self._enforcement, generation=self.generation)
        raw["metadata"]["resourceVersion"] = str(self._version)
        return raw | {"status": status}


class Stage:
    """A leader's worker with pods of a policy that acts after its grace period."""

    def __init__(self, *actions: str, grace_seconds: int = 60) -> None:
        enforcement: Raw = {
            "mode": "Enforce",
            "actions": list(actions or ("Evict",)),
            "gracePeriodSeconds": grace_seconds,
        }
        self.cache = Cache(Values(), own_namespace="gpumem-system")
        self.cache.seal = SEAL
        self.cache.namespaces.see(NAMESPACE)
        self.cache.policies.see(policy(selector={}, enforcement=enforcement))
        self.cluster = Cluster(enforcement)
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)
        self.board = UsageBoard(self.cache, values=Values(), monotonic=self.monotonic)
        self.has_pod("train")
        self.leads()
        self._sequence = 0

    def leads(self) -> None:
        """A leader begins, without a memory."""
        self.orders = OrderBook()
        self.worker = EnforcementWorker(
            self.cache,
            Writer(self.cluster, Leads()),
            board=self.board,
            orders=self.orders,
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

    def monotonic(self) -> float:
        """The clock by which reports are taken in."""
        return self.now.timestamp()

    def ignores_the_namespace(self) -> None:
        """From now on the operator leaves it alone."""
        metadata = {"resourceVersion": "2", "labels": {names.IGNORE_LABEL: "true"}}
        self.cache.namespaces.see({"metadata": NAMESPACE["metadata"] | metadata})

    def edits_the_policy(self) -> None:
        """In a way that changes nothing for overuse."""
        self.cluster.generation += 1
        self.cache.policies.see(self.cluster.policy(self.cluster.status))

    async def looks_at_everything(self, gib: int) -> list[str]:
        """What a look at all pods did after a report; 10 s later."""
        await self.hears(gib, after=10)
        done = list(self.cluster.done)
        self.cluster.done.clear()
        self.worker.look(self.board.snapshot())
        await self.worker.reconcile()
        return done + self.cluster.done

    def passes(self, seconds: float) -> None:
        """On both clocks."""
        self.now += timedelta(seconds=seconds)

    async def hears(self, gib: int, *, after: float = 0.5) -> list[str]:
        """What one look did, after a report and without a snapshot of everything."""
        self.passes(after)
        self.cluster.done.clear()
        self._sequence += 1
        for pod in self.cluster.pods.values():
            uid = pod["metadata"]["uid"]
            sender = Sender("Sidecar", uid)
            told = report(process(gib * GIB, pod=uid), sequence=self._sequence)
            self.board.store.take(sender, told, self.monotonic())
            self.worker.hear(sender)
        await self.worker.reconcile()
        return list(self.cluster.done)

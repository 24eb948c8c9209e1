"""A worker for scaling with a small API server around it, and pods that hold what is said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import aiohttp

from controllers.recording import Leads
from controllers.stored import Raw, managed_pod, policy, sealed
from gpumem_operator.api.scaling import EngineSignal
from gpumem_operator.api.seal import Seal
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.engine_signals import EngineSignals
from gpumem_operator.controllers.entries import PodEntry
from gpumem_operator.controllers.options import Periods
from gpumem_operator.controllers.scaling import ScalingWorker
from gpumem_operator.controllers.usage import UsageBoard
from gpumem_operator.controllers.workloads import Gatherer
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import ApiError, Conflict, NotFound
from gpumem_operator.reports.pictures import Sender
from report_builders import GIB, process, report

SEAL = Seal(b"k" * 32)
APPS: Raw = {
    "resources": [
        {"name": "deployments", "kind": "Deployment", "namespaced": True},
        {"name": "deployments/scale", "kind": "Scale", "namespaced": True},
    ]
}
NAMESPACE: Raw = {"metadata": {"name": "team", "uid": "ns", "resourceVersion": "1"}}


@dataclass
class Cluster(Api):
    """What of an API server a look at scaling needs; `answers` are raised in turn, by method."""

    cache: Cache
    replicas: dict[str, int]
    done: list[tuple[str, Any]] = field(default_factory=list)
    errors: dict[str, list[ApiError]] = field(default_factory=dict)
    meanwhile: dict[str, int] = field(default_factory=dict)
    """What somebody else has changed by the time of an error."""

    async def request(self, method: str, path: str, **fields: Any) -> Raw:
        if method == "GET":
            return self._read(path)
        name = path.split("/")[-1]
        if waiting := self.errors.get(name):
            self.replicas |= self.meanwhile
            raise waiting.pop(0)
        return self._write(path, fields["body"])

    def _read(self, path: str) -> Raw:
        if path == "/apis/apps/v1":
            return APPS
        if path.endswith("/scale"):
            name = path.split("/")[-2]
            if name not in self.replicas:
                raise NotFound(path, "404 not found", 404)
            return {
                "metadata": {"name": name, "uid": f"uid-of-{name}"},
                "spec": {"replicas": self.replicas[name]},
                "status": {"selector": f"app={name}"},
            }
        return {"items": []}

    def _write(self, path: str, body: Any) -> Raw:
        what = path.split("/")[-1]
        if what == "scale":
            self.replicas[path.split("/")[-2]] = body[-1]["value"]
            self.done.append((what, body[-1]["value"]))
        elif what == "status":
            self._store(body)
            self.done.append((what, body["status"]["scaling"]))
        else:
            self.done.append((body["type"], body["reason"]))
        return {}

    def _store(self, body: Raw) -> None:
        ((_, row),) = list(self.cache.policies.rows())
        if str(row.version) != body["metadata"]["resourceVersion"]:
            raise Conflict("PATCH", "409 changed", 409)
        assert row.value.record.spec is not None
        self.store_status(row.value.record.spec.scaling, row.version + 1, body["status"])

    def store_status(self, targets: Any, version: int, status: Raw) -> None:
        """As the watch would bring it."""
        raw = scaling_policy([one.model_dump(by_alias=True, exclude_none=True) for one in targets])
        raw["metadata"]["resourceVersion"] = str(version)
        self.cache.policies.see(raw | {"status": status})


def entry(name: str = "serve", **fields: Any) -> Raw:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {"targetRef": reference, "maxReplicas": 20, **fields}


def scaling_policy(entries: list[Raw]) -> Raw:
    return policy(scaling=entries, selector={})


class Engines(EngineSignals):
    """All tell the same number."""

    def __init__(self, session: aiohttp.ClientSession, number: str) -> None:
        super().__init__(session)
        self._number = Fraction(number)

    async def of_pods(
        self, entries: Iterable[PodEntry], _: EngineSignal
    ) -> dict[str, Fraction | str]:
        return {entry.measured.uid: self._number for entry in entries}


class Stage:
    """A worker with a cluster around it, and pods that hold what is said."""

    def __init__(self, **loads: list[int]) -> None:
        """By workload, what each of its pods holds, in GiB; the limit is 10."""
        self.cache = Cache(Values(), own_namespace="gpumem-system")
        self.cache.seal = SEAL
        self.cache.namespaces.see(NAMESPACE)
        self.cluster = Cluster(self.cache, {name: len(held) for name, held in loads.items()})
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)
        self.seconds = 100.0
        self.board = UsageBoard(self.cache, values=Values(), monotonic=lambda: self.seconds)
        for name, held in loads.items():
            for number, gib in enumerate(held):
                self._pod(name, f"{name}-{number}", gib)
        self.cache.policies.see(scaling_policy([entry(name) for name in loads]))
        self.worker = ScalingWorker(
            self.cache,
            self._writer(),
            snapshot=self.board.snapshot,
            periods=Periods(settle=0),
            now=lambda: self.now,
        )

    def _writer(self) -> Writer:
        return Writer(self.cluster, Leads())

    def _pod(self, app: str, name: str, gib: int) -> None:
        raw = managed_pod(
            name, policy="training", limit_bytes=10 * GIB, labels={"app": app}, phase="Running"
        )
        raw["spec"] |= {"nodeName": "gpu-1", "initContainers": [{"name": "gpumem-sidecar"}]}
        self.cache.pods.see(sealed(raw, SEAL))
        uid = raw["metadata"]["uid"]
        self.board.store.take(Sender("Sidecar", uid), report(process(gib * GIB, pod=uid)), 100.0)

    def loses_sight(self) -> None:
        """From now on nobody knows what any pod holds."""
        self.seconds += 2
        for _, row in self.cache.pods.rows():
            unknown = report(process("NotAvailable", pod=row.uid), sequence=2)
            self.board.store.take(Sender("Sidecar", row.uid), unknown, self.seconds)

    async def look(
        self, *, after: float = 10.0, signal: str | None = None
    ) -> list[tuple[str, Any]]:
        """What one look did; `signal` is what every engine tells."""
        self.now += timedelta(seconds=after)
        self.cluster.done.clear()
        async with aiohttp.ClientSession() as session:
            signals = EngineSignals(session) if signal is None else Engines(session, signal)
            gatherer = Gatherer(self.cache, self._writer(), signals)
            await self.worker.look(gatherer)
        return list(self.cluster.done)

    def told(self) -> list[Raw]:
        ((_, row),) = list(self.cache.policies.rows())
        return list(row.value.status.get("scaling") or ())

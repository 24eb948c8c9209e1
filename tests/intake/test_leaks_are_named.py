"""A pod whose use only grows, on a real API server; half an hour passes on a clock of the test."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from prometheus_client import REGISTRY

from controllers.recording import Leads
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.alarms import Alarms
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.growing import GrowingPods
from gpumem_operator.controllers.overuse import Gathering
from gpumem_operator.controllers.sealing import SealKey
from gpumem_operator.controllers.usage import UsageBoard
from gpumem_operator.controllers.worker import utc_now
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.api import connect
from gpumem_operator.metrics import growth
from gpumem_operator.reports.pictures import Sender
from intake.senders import Cast
from report_builders import GIB, MIB, process, report

pytestmark = pytest.mark.cluster

SLOT_SECONDS = 300.0
LEAK_MIB = 64
"""In each five minutes: 768 MiB an hour."""


@dataclass
class Leader:
    """What a leader knows of leaks, in this process: the cluster's objects, and reports."""

    board: UsageBoard
    cache: Cache
    growing: GrowingPods
    clock: list[float]

    async def hears(self, held: Mapping[str, int]) -> None:
        """What pods hold by uid, five minutes after the last time."""
        self.clock[0] += SLOT_SECONDS
        for uid, amount in held.items():
            told = report(process(amount, pod=uid), sequence=int(self.clock[0]))
            self.board.store.take(Sender("Sidecar", uid), told, self.clock[0])
        uses = [view.use for view in self.board.snapshot().pods.values()]
        await self.growing.look(Gathering(self.cache, self.board).suspects(uses))


@asynccontextmanager
async def leading(cast: Cast) -> AsyncIterator[Leader]:
    operator, clock = cast.operator, [1000.0]
    async with connect(operator.kubeconfig_of("controller")) as api:
        cache = Cache(Values(), own_namespace=operator.namespace)
        name = f"{operator.release}-seal"
        cache.seal = await SealKey(namespace=operator.namespace, name=name).seal(api)
        await cache.list_all(api)
        board = UsageBoard(cache, values=Values(), monotonic=lambda: clock[0])
        growing = GrowingPods(Alarms(Writer(api, Leads()), utc_now), monotonic=lambda: clock[0])
        try:
            yield Leader(board, cache, growing, clock)
        finally:
            growth.show(())


def told(cast: Cast, pod: str) -> list[str]:
    about = f"--field-selector=involvedObject.name={pod},reason=GrowingUse"
    listed: Any = json.loads(cast.kubectl("get", "events", about, "-o", "json"))
    return [one["message"] for one in listed["items"]]


async def test_a_pod_that_leaks_is_named_with_its_rate_and_the_time_that_is_left(
    cast: Cast,
) -> None:
    uid, steady = cast.pod("leaking"), cast.pod("steady")
    async with leading(cast) as leader:
        for number in range(8):
            grown = number * LEAK_MIB * MIB
            await leader.hears({steady: 4 * GIB, uid: 4 * GIB + grown})
        labels = {"namespace": cast.namespace, "pod": "leaking", "container": "main"}
        rate = series("gpumem_growth_bytes_per_second", labels)
        left = series("gpumem_seconds_to_limit", labels)
        assert series("gpumem_seconds_to_limit", labels | {"pod": "steady"}) is None
    assert rate == pytest.approx(LEAK_MIB * MIB / SLOT_SECONDS)
    assert left == pytest.approx((4096 - 7 * LEAK_MIB) / LEAK_MIB * SLOT_SECONDS)
    [message] = told(cast, "leaking")
    assert "has only grown for 30 minutes, by 768Mi an hour" in message
    assert "its limit is reached in 4 h 50 min" in message, "told once, when half an hour was over"
    assert told(cast, "steady") == []


def series(name: str, labels: dict[str, str]) -> float | None:
    """Of any GPU."""
    found = [
        sample.value
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return found[0] if found else None

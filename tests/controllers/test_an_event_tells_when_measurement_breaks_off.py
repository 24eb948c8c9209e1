"""One Warning event when use can not be read any more, and none for what is to be expected."""

from datetime import UTC, datetime, timedelta
from typing import Self

import pytest

from controllers.recording import Recorder
from controllers.stored import policy, sealed
from controllers.team_cache import SEAL, measured_pod, status_worker
from gpumem_operator.api.quantity import GIB
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.reports.attribution import attribute
from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.snapshot import Snapshot, view_of
from gpumem_operator.reports.store import Store
from report_builders import process, report

START = datetime(2026, 3, 1, tzinfo=UTC)


class Scene:
    """One policy with one pod that runs, and a leader since some time."""

    def __init__(self) -> None:
        self.now = START
        self.cache = Cache(Values(), own_namespace="operator")
        self.cache.seal = SEAL
        self.cache.pods.see(sealed(measured_pod(), SEAL))
        self.api = Recorder(self.cache.policies, policy(limits={"default": "8Gi"}))
        self.cache.policies.see(policy(limits={"default": "8Gi"}))
        self.worker = status_worker(self.cache, self.api, now=lambda: self.now)
        self.store = Store()

    async def at(self, seconds: float, amount: int | None = None) -> Self:
        """Look at everything; with an amount, the sidecar has just reported it."""
        self.now = START + timedelta(seconds=seconds)
        (row,) = (row for _, row in self.cache.pods.rows())
        if amount is not None:
            one = report(process(amount, pod=row.uid), sequence=int(seconds))
            self.store.take(Sender("Sidecar", row.uid), one, seconds)
        usage = attribute([row.value.measured], self.store.pictures(), seconds)
        views = {
            uid: view_of(use, declared_bytes=None, charges={}) for uid, use in usage.pods.items()
        }
        self.worker.look_at_use(Snapshot(views))
        await self.worker.reconcile(["team"])
        return self


async def test_silence_is_told_once() -> None:
    scene = await Scene().at(100, GIB)
    assert scene.api.statuses[-1]["memory"]["usedBytes"] == GIB
    assert scene.api.events == []
    for seconds in (195, 205, 215):
        await scene.at(seconds)
    (event,) = scene.api.events
    assert (event["type"], event["reason"]) == ("Warning", "MeasurementUnavailable")
    assert "1 of 1 running pods hold is not known: 1 Silent" in event["message"]
    assert event["involvedObject"]["kind"] == "GPUMemoryPolicy"
    assert "usedBytes" not in {
        key for key, value in scene.api.statuses[-1]["memory"].items() if value is not None
    }
    await scene.at(300, GIB)
    await scene.at(400)
    assert len(scene.api.events) == 1, "it flaps"
    await scene.at(800, GIB)
    await scene.at(900)
    assert len(scene.api.events) == 2, "it broke off again, ten minutes later"


async def test_a_pod_that_has_not_been_reported_yet_is_no_event() -> None:
    scene = await Scene().at(100)
    (condition,) = [
        one
        for one in scene.api.statuses[-1]["conditions"]
        if one["type"] == "MeasurementUnavailable"
    ]
    assert condition["reason"] == "WaitingForReports"
    assert scene.api.events == []


@pytest.mark.parametrize("change", [0, 5 * 2**20])
async def test_nothing_is_written_for_nothing(change: int) -> None:
    scene = await Scene().at(100, GIB)
    written = len(scene.api.statuses)
    await scene.at(110, GIB + change)
    assert len(scene.api.statuses) == written

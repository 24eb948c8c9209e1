"""A tenant over its quota, or whose pods hold more than they are charged: conditions that clear,
and few events."""

from datetime import UTC, datetime, timedelta
from typing import Self

from controllers.recording import Recorder
from controllers.stored import tenant
from controllers.team_cache import measured_pod, status_worker, team_cache
from gpumem_operator.api.quantity import GIB, MIB
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.alarms import PAUSE
from gpumem_operator.controllers.usage import UsageBoard
from gpumem_operator.reports.pictures import Sender
from report_builders import process, report

START = datetime(2026, 3, 1, tzinfo=UTC)
KIND = "UsingMoreThanCharged"


class Scene:
    """One tenant with one pod that runs with a charge of 8Gi."""

    def __init__(self) -> None:
        self.now = START
        self.cache = team_cache(measured_pod())
        self.api = Recorder(self.cache.tenants, tenant())
        self.seconds = 0.0
        self.board = UsageBoard(self.cache, values=Values(), monotonic=lambda: self.seconds)
        self.lead()

    def lead(self) -> None:
        """Begin as a new leader, without a memory."""
        self.worker = status_worker(self.cache, self.api, now=lambda: self.now)

    async def at(self, seconds: float, amount: int | None = None) -> Self:
        """Look at everything; with an amount, the sidecar has just reported it."""
        self.seconds, self.now = seconds, START + timedelta(seconds=seconds)
        (row,) = (row for _, row in self.cache.pods.rows())
        if amount is not None:
            one = report(process(amount, pod=row.uid), sequence=int(seconds))
            self.board.store.take(Sender("Sidecar", row.uid), one, seconds)
        self.worker.look_at_use(self.board.snapshot())
        await self.worker.reconcile(["team"])
        return self

    @property
    def condition(self) -> tuple[str, str]:
        (one,) = [one for one in self.api.statuses[-1]["conditions"] if one["type"] == KIND]
        return one["status"], one["message"]


async def test_it_is_told_once_and_clears_itself() -> None:
    scene = await Scene().at(100, 8 * GIB)
    assert scene.condition == ("False", "No pod holds more than it is charged.")
    await scene.at(110, 12 * GIB)
    status, message = scene.condition
    assert status == "True"
    assert "team/train holds 12Gi, 4Gi above its charge of 8Gi" in message
    (event,) = scene.api.events
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "HoldsMore", message)
    assert event["involvedObject"]["kind"] == "GPUMemoryTenant"
    assert event["metadata"]["namespace"] == "default"
    await scene.at(120, 13 * GIB)
    assert scene.condition[0] == "True"
    assert len(scene.api.events) == 1, "it has not turned True again"
    await scene.at(130, 7 * GIB)
    assert scene.condition[0] == "False"
    assert scene.api.statuses[-1]["podsOverCharge"] == []


async def test_a_tenant_that_comes_to_be_over_its_quota_is_told_of_once() -> None:
    scene = await Scene().at(100, GIB)
    lowered = tenant()
    lowered["spec"]["quota"]["limit"] = "4Gi"
    lowered["metadata"]["resourceVersion"] = "100"
    scene.cache.tenants.see(lowered)
    await scene.at(110, GIB)
    await scene.at(120, GIB)
    (event,) = scene.api.events
    assert event["reason"] == "QuotaExceeded"
    assert "8Gi is charged and the quota is 4Gi: 4Gi too much" in event["message"]


async def test_one_that_comes_and_goes_is_told_of_once_in_ten_minutes() -> None:
    scene = Scene()
    for second in range(100, 160, 10):
        await scene.at(second, (12 if second % 20 else 7) * GIB)
    assert len(scene.api.events) == 1
    later = 110 + int(PAUSE.total_seconds())
    await scene.at(later, 7 * GIB)
    await scene.at(later + 10, 12 * GIB)
    assert len(scene.api.events) == 2


async def test_silence_is_unknown_and_no_reason_for_an_event() -> None:
    scene = await Scene().at(100)
    assert scene.condition[0] == "Unknown"
    await scene.at(110, 12 * GIB)
    await scene.at(210)
    assert scene.condition[0] == "Unknown"
    assert scene.api.statuses[-1]["podsOverCharge"] == []
    assert len(scene.api.events) == 1


async def test_nothing_is_written_for_what_measurement_wavers_by() -> None:
    scene = await Scene().at(100, 12 * GIB)
    written = len(scene.api.statuses)
    await scene.at(110, 12 * GIB + 50 * MIB)
    await scene.at(120, 12 * GIB - 50 * MIB)
    scene.lead()
    await scene.at(130, 12 * GIB + 50 * MIB)
    assert len(scene.api.statuses) == written

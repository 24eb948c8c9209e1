"""One Warning event when use can not be read any more, and none for what is to be expected."""

from datetime import UTC, datetime, timedelta
from typing import Self

import pytest

from controllers.measured_team import MeasuredTeam
from controllers.team_cache import measured_pod
from gpumem_operator.api.quantity import GIB

START = datetime(2026, 3, 1, tzinfo=UTC)


class Scene:
    """A policy with a pod that runs, and a leader since some time."""

    def __init__(self) -> None:
        self.now = START
        self.team = MeasuredTeam(measured_pod(), now=lambda: self.now)
        self.api = self.team.api

    async def at(self, seconds: float, amount: int | None = None) -> Self:
        """Look at everything; with an amount, the sidecar has just reported it."""
        self.now = START + timedelta(seconds=seconds)
        if amount is not None:
            self.team.hear(amount, seconds=seconds)
        self.team.look(seconds=seconds)
        await self.team.worker.reconcile(["team"])
        return self


async def test_silence_is_told_once() -> None:
    scene = await Scene().at(100, GIB)
    assert scene.api.statuses[-1]["memory"]["usedBytes"] == GIB
    assert scene.api.events == []
    for seconds in (195, 205, 215):
        await scene.at(seconds)
    (event,) = scene.api.events
    assert (event["type"], event["reason"]) == ("Warning", "Unreadable")
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

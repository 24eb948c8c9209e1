"""What a policy's status says of use is written again once a look shows that it changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from controllers.measured_team import MeasuredTeam
from controllers.team_cache import measured_pod
from gpumem_operator.api.conditions import MEASUREMENT_UNAVAILABLE
from gpumem_operator.api.quantity import GIB
from gpumem_operator.api.transitions import condition


@pytest.fixture
async def team() -> AsyncIterator[MeasuredTeam]:
    """Its pod is there and has not started; the leader runs."""
    waits = measured_pod() | {"status": {"phase": "Pending"}}
    team = MeasuredTeam(waits, now=lambda: datetime(2026, 3, 1, tzinfo=UTC))
    running = asyncio.create_task(team.worker.run())
    yield team
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


def started(version: int) -> dict[str, object]:
    pod = measured_pod()
    return pod | {"metadata": pod["metadata"] | {"resourceVersion": str(version)}}


async def told(team: MeasuredTeam) -> tuple[str, int | None]:
    """Reason and use in the status, once the leader has nothing more to do."""
    for _ in range(50):
        await asyncio.sleep(0)
    reason = condition(team.status, MEASUREMENT_UNAVAILABLE)["reason"]
    return str(reason), team.status["memory"]["usedBytes"]


async def test_a_pod_that_started_and_holds_nothing_is_measured(team: MeasuredTeam) -> None:
    team.look(seconds=0)
    assert await told(team) == ("NoPods", 0)
    # The event comes first: the look that it is judged by is still the old one.
    team.see(started(2))
    assert await told(team) == ("NoPods", 0)
    team.hear(0, seconds=5)

    team.look(seconds=10)

    assert await told(team) == ("Measured", 0)


async def test_what_is_held_and_what_is_no_longer_known_are_told(team: MeasuredTeam) -> None:
    team.see(started(2))
    team.hear(GIB, seconds=5)
    team.look(seconds=10)
    assert await told(team) == ("Measured", GIB)

    team.look(seconds=110)

    assert await told(team) == ("Unreadable", None)

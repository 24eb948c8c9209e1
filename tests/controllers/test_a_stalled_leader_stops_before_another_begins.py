"""The election on a real API server, with a leader whose connection stalls."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest

from devcluster import Cluster
from gpumem_operator.kube.api import Api, Object, connect
from gpumem_operator.kube.election import Timings
from gpumem_operator.kube.lease import Leadership, LeadershipLost
from gpumem_operator.kube.resources import LEASES

pytestmark = pytest.mark.cluster
FAST = Timings(lease_seconds=6, renew_seconds=2.0, retry_seconds=0.3)
"""For what happens once a lease was not renewed; the last seconds are for a machine at work."""
PATIENT = Timings(lease_seconds=180, renew_seconds=120.0, retry_seconds=0.3)
"""For what happens while it is renewed, however slowly."""


class Line:
    """The way to the API server, which can be made to stall as a broken network does."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.open = asyncio.Event()
        self.open.set()
        self.waited = asyncio.Event()
        """Set once a request has met the stall."""
        self.gets = 0
        self.asked = asyncio.Event()

    async def _through(
        self, request: Callable[..., Awaitable[Object]], *args: Any, **rest: Any
    ) -> Object:
        if not self.open.is_set():
            self.waited.set()
            await self.open.wait()
        return await request(*args, **rest)

    async def get(self, path: str, *, seconds: float = 15) -> Object:
        self.gets += 1
        self.asked.set()
        return await self._through(self._api.get, path, seconds=seconds)

    async def create(self, path: str, body: Object, *, seconds: float = 15) -> Object:
        return await self._through(self._api.create, path, body, seconds=seconds)

    async def replace(self, path: str, body: Object, *, seconds: float = 15) -> Object:
        return await self._through(self._api.replace, path, body, seconds=seconds)


@dataclass
class Candidate:
    """A process of the election, as a task; it notes when it works."""

    line: Line
    leadership: Leadership
    began: asyncio.Event = field(default_factory=asyncio.Event)
    began_at: float = 0.0
    ended_at: float = 0.0
    task: asyncio.Task[None] | None = None

    def start(self) -> "Candidate":
        self.task = asyncio.create_task(self.leadership.run(self.work))
        return self

    async def work(self) -> None:
        self.began_at = time.monotonic()
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            # Cleaning up takes a while, and still nobody else may have begun at its end.
            await asyncio.sleep(0.2)
            self.ended_at = time.monotonic()

    async def looked(self, *, times: int) -> None:
        """Wait until it has asked for the lease so often; it has acted on each but the last."""
        wanted = self.line.gets + times
        while self.line.gets < wanted:
            self.line.asked.clear()
            await self.line.asked.wait()

    async def end(self) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.wait({self.task})


@pytest.fixture
async def api(cluster: Cluster) -> AsyncIterator[Api]:
    async with connect(Path(cluster.kubeconfig)) as api:
        yield api


class Join(Protocol):
    """Adds a candidate of that name to the election."""

    def __call__(self, identity: str, timings: Timings = ...) -> Candidate: ...


@pytest.fixture
async def lease(api: Api) -> AsyncIterator[str]:
    name = f"election-{uuid.uuid4().hex[:8]}"
    yield name
    await api.request("DELETE", LEASES.path(name, namespace="default"))


@pytest.fixture
async def join(api: Api, lease: str) -> AsyncIterator[Join]:
    candidates: list[Candidate] = []

    def join_as(identity: str, timings: Timings = PATIENT) -> Candidate:
        line = Line(api)
        leadership = Leadership(
            line, namespace="default", name=lease, identity=identity, timings=timings
        )
        candidates.append(Candidate(line, leadership))
        return candidates[-1].start()

    yield join_as
    for candidate in candidates:
        candidate.line.open.set()
        await candidate.end()


async def spec_of(api: Api, lease: str) -> dict[str, Any]:
    found = await api.get(LEASES.path(lease, namespace="default"))
    spec: dict[str, Any] = found["spec"]
    return spec


async def test_a_leader_whose_connection_stalls_has_ended_before_the_next_begins(
    api: Api, lease: str, join: Join
) -> None:
    first = join("first", FAST)
    await first.began.wait()
    second = join("second", FAST)
    first.line.open.clear()
    assert first.task is not None
    with pytest.raises(LeadershipLost, match="was not renewed"):
        await first.task
    assert first.ended_at, "the work was not waited for"
    assert not second.began.is_set()
    await second.began.wait()
    with pytest.raises(LeadershipLost):
        first.leadership.check()
    second.leadership.check()
    assert (await spec_of(api, lease))["leaseTransitions"] == 1


async def test_a_clock_that_leaps_over_the_lease_is_enough_to_fall_silent(
    api: Api, lease: str
) -> None:
    """As for a process that was stopped: it wakes, and has not looked at the lease yet."""
    leap = 0.0
    leadership = Leadership(
        api,
        namespace="default",
        name=lease,
        identity="stopped",
        timings=PATIENT,
        monotonic=lambda: time.monotonic() + leap,
    )
    heard: list[str | None] = [leadership.lapsed]

    async def work() -> None:
        nonlocal leap
        heard.append(leadership.lapsed)
        leap = PATIENT.renew_seconds
        heard.append(leadership.lapsed)
        leap = 0.0

    await leadership.run(work)
    first, working, woken, after = *heard, leadership.lapsed
    assert (first, working, after) == (None, None, None), "a candidate has nothing to hide"
    assert "it was not renewed" in (woken or "")


async def test_a_released_lease_is_taken_long_before_it_would_have_expired(
    api: Api, lease: str, join: Join
) -> None:
    first = join("first")
    await first.began.wait()
    second = join("second")
    await second.looked(times=2)
    assert not second.began.is_set()
    await first.end()
    released_at = time.monotonic()
    await second.began.wait()
    assert second.began_at > first.ended_at
    assert second.began_at - released_at < PATIENT.lease_seconds / 2
    assert (await spec_of(api, lease))["holderIdentity"] == "second"


async def test_two_that_start_together_on_no_lease_do_not_both_lead(join: Join) -> None:
    both = [join("first"), join("second")]
    await asyncio.wait(
        [asyncio.create_task(one.began.wait()) for one in both],
        return_when=asyncio.FIRST_COMPLETED,
    )
    for one in both:
        await one.looked(times=2)
    assert sum(one.began.is_set() for one in both) == 1


async def test_a_leader_goes_on_through_a_stall_that_is_short_enough(
    api: Api, lease: str, join: Join
) -> None:
    first = join("first")
    await first.began.wait()
    first.line.open.clear()
    await first.line.waited.wait()
    before = (await spec_of(api, lease))["renewTime"]
    first.line.open.set()
    await first.looked(times=2)
    first.leadership.check()
    after = await spec_of(api, lease)
    assert after["renewTime"] > before
    assert after["leaseTransitions"] == 0


async def test_times_in_the_lease_are_in_utc(api: Api, lease: str, join: Join) -> None:
    first = join("first")
    await first.began.wait()
    written = (await spec_of(api, lease))["renewTime"]
    assert written.startswith(time.strftime("%Y-%m-%dT%H:", time.gmtime()))
    assert written.endswith("Z")


async def test_a_leader_whose_lease_somebody_took_stops_at_its_next_look(
    api: Api, lease: str, join: Join
) -> None:
    first = join("first")
    await first.began.wait()
    taken = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 30}}
    await api.request(
        "PATCH",
        LEASES.path(lease, namespace="default"),
        body=taken,
        content_type="application/merge-patch+json",
    )
    assert first.task is not None
    with pytest.raises(LeadershipLost, match="thief took it"):
        await first.task
    # Nothing of the thief's is released.
    assert (await spec_of(api, lease))["holderIdentity"] == "thief"


async def test_work_that_fails_gives_the_lease_back_and_tells_its_error(
    api: Api, lease: str
) -> None:
    async def fail() -> None:
        raise RuntimeError("a bug")

    leadership = Leadership(api, namespace="default", name=lease, identity="x")
    with pytest.raises(RuntimeError, match="a bug"):
        await leadership.run(fail)
    assert (await spec_of(api, lease))["holderIdentity"] == ""


async def test_the_end_of_work_is_announced_before_it_is_waited_for(api: Api, lease: str) -> None:
    announced = asyncio.Event()
    began = asyncio.Event()

    async def hang() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await announced.wait()

    leadership = Leadership(
        api, namespace="default", name=lease, identity="x", ending=announced.set
    )
    task = asyncio.create_task(leadership.run(hang))
    await began.wait()
    task.cancel()
    await asyncio.wait({task})
    assert announced.is_set()

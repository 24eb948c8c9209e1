"""Pods that ask one tenant for room: few writes, no answer before its write, nothing kept twice."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from gpumem_operator.api.tenant import Quota
from gpumem_operator.kube.errors import ApiError, Conflict, NotFound
from gpumem_operator.ledger.book import Reason
from gpumem_operator.ledger.reservation import Reservation
from gpumem_operator.ledger.reserve import Asking, Page
from gpumem_operator.webhook.desk import Refusal
from gpumem_operator.webhook.rooms import Rooms


def page(tenant: str = "t", *, limit: int = 10, exceeded: str = "Reject", charged: int = 0) -> Page:
    quota = Quota.model_validate({"limit": limit, "wholeGPU": 1, "onExceeded": exceeded})
    return Page(tenant, "1", quota, charged)


def asking(name: str, amount: int = 1) -> Asking:
    return Asking(f"uid-{name}", "team", name, lambda _: amount)


class Server:
    """Stored tenants; writes wait until the test lets them through."""

    def __init__(self, *pages: Page) -> None:
        self.pages = {one.tenant: one for one in pages}
        self.open = asyncio.Event()
        self.open.set()
        self.writing = asyncio.Event()
        """Set when a write has begun."""
        self.writes: list[list[str]] = []
        """Names of pods with a reservation, by stored write."""
        self.reads = 0
        self.fault: ApiError | None = None
        self.loses_answer = False

    async def read(self, tenant: str) -> Page:
        self.reads += 1
        if self.fault is not None:
            raise self.fault
        if tenant not in self.pages:
            raise NotFound("GET", "404", 404)
        return self.pages[tenant]

    async def write(self, read: Page, reservations: tuple[Reservation, ...]) -> None:
        self.writing.set()
        await self.open.wait()
        stored = self.pages[read.tenant]
        if stored.version != read.version:
            raise Conflict("PATCH", "409", 409)
        self.change(read.tenant, reservations=reservations)
        self.writes.append([one.name for one in reservations])
        if self.loses_answer:
            self.loses_answer = False
            raise ApiError("PATCH", "no answer")

    def change(self, tenant: str, **fields: object) -> None:
        stored = self.pages[tenant]
        version = str(int(stored.version) + 1)
        self.pages[tenant] = replace(stored, version=version, **fields)  # type: ignore[arg-type]

    def kept(self, tenant: str = "t") -> list[str]:
        return [one.name for one in self.pages[tenant].reservations]


async def all_of(rooms: Rooms, *pods: Asking) -> list[Refusal | None]:
    return list(await asyncio.gather(*(rooms.reserve(pod, ["t"]) for pod in pods)))


async def idle() -> None:
    """Until nothing is left to do for anybody but the test."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others)


async def test_those_who_come_while_a_write_is_on_its_way_share_the_next() -> None:
    server = Server(page())
    rooms = Rooms(server)
    server.open.clear()
    first = asyncio.create_task(all_of(rooms, asking("a")))
    await server.writing.wait()
    others = asyncio.create_task(all_of(rooms, asking("b"), asking("c"), asking("d")))
    await asyncio.sleep(0)
    server.open.set()
    assert (await first, await others) == ([None], [None, None, None])
    assert server.writes == [["a"], ["a", "b", "c", "d"]]


async def test_who_is_not_first_is_refused_with_the_arithmetic_of_the_stored_tenant() -> None:
    server = Server(page(limit=10, charged=4))
    answers = await all_of(Rooms(server), asking("a", 5), asking("b", 5), asking("c", 1))
    assert [answer is None for answer in answers] == [True, False, True]
    assert answers[1] is not None
    obstacle = answers[1].obstacle
    assert (obstacle.reason, obstacle.tenant, obstacle.asked_bytes) == (Reason.NO_ROOM, "t", 5)
    assert obstacle.room is not None
    assert (obstacle.room.left_bytes, obstacle.room.charged_bytes) == (1, 4)
    assert server.writes == [["a", "c"]]


async def test_whoever_is_overtaken_reads_again_and_takes_others_along() -> None:
    server = Server(page(limit=3))
    rooms = Rooms(server)
    server.open.clear()
    first = asyncio.create_task(all_of(rooms, asking("a", 2)))
    await server.writing.wait()
    server.change("t", charged_bytes=2)
    second = asyncio.create_task(all_of(rooms, asking("b", 1)))
    await asyncio.sleep(0)
    server.open.set()
    [refusal] = await first
    assert refusal is not None
    assert refusal.obstacle.reason is Reason.NO_ROOM
    assert await second == [None]
    assert server.writes == [["b"]]


async def test_nothing_is_written_where_nobody_gets_anything() -> None:
    server = Server(page(limit=1, charged=1))
    [refusal] = await all_of(Rooms(server), asking("a"))
    assert refusal is not None
    assert server.writes == []


async def test_who_asks_again_keeps_what_it_has() -> None:
    server = Server(page(limit=1))
    rooms = Rooms(server)
    assert await all_of(rooms, asking("a")) == [None]
    assert await all_of(rooms, asking("a")) == [None]
    assert server.writes == [["a"]]


async def test_what_one_tenant_gave_goes_back_where_another_refuses() -> None:
    server = Server(page("a"), page("b", charged=10), page("c"))
    refusal = await Rooms(server).reserve(asking("pod"), ["c", "b", "a"])
    assert refusal is not None
    assert refusal.obstacle.tenant == "b"
    await idle()
    assert [server.kept(name) for name in "abc"] == [[], [], []]
    assert server.writes == [["pod"], []]


async def test_who_waits_no_longer_leaves_nothing_behind() -> None:
    server = Server(page())
    server.open.clear()
    waiting = asyncio.create_task(Rooms(server).reserve(asking("late"), ["t"]))
    await server.writing.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    server.open.set()
    await idle()
    assert server.writes == [["late"], []]


async def test_who_gave_up_before_its_turn_is_not_written_at_all() -> None:
    server = Server(page())
    rooms = Rooms(server)
    server.open.clear()
    first = asyncio.create_task(rooms.reserve(asking("first"), ["t"]))
    await server.writing.wait()
    second = asyncio.create_task(rooms.reserve(asking("second"), ["t"]))
    await asyncio.sleep(0)
    second.cancel()
    server.open.set()
    assert await first is None
    await idle()
    assert server.writes == [["first"]]


async def test_a_write_without_an_answer_is_taken_back_because_the_pod_was_refused() -> None:
    server = Server(page())
    server.loses_answer = True
    with pytest.raises(ApiError, match="no answer"):
        await Rooms(server).reserve(asking("a"), ["t"])
    await idle()
    assert server.kept() == []


async def test_a_server_that_fails_fails_all_who_asked_and_nobody_hangs() -> None:
    server = Server(page())
    server.fault = ApiError("GET", "500", 500)
    rooms = Rooms(server)
    outcomes = await asyncio.gather(
        *(rooms.reserve(asking(name), ["t"]) for name in "abc"), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [ApiError] * 3
    await idle()
    server.fault = None
    assert await rooms.reserve(asking("d"), ["t"]) is None


async def test_a_tenant_that_is_gone_or_only_warns_is_not_asked_to_keep_anything() -> None:
    server = Server(page("warns", exceeded="Warn", limit=0))
    assert await Rooms(server).reserve(asking("a"), ["gone", "warns"]) is None
    assert server.writes == []


async def test_a_dry_run_reads_and_writes_nothing() -> None:
    server = Server(page(limit=1))
    rooms = Rooms(server)
    assert await rooms.look(asking("a"), ["t"]) is None
    refusal = await rooms.look(asking("b", 2), ["t"])
    assert refusal is not None
    assert refusal.obstacle.reason is Reason.NEVER_FITS
    assert (server.writes, server.reads) == ([], 2)

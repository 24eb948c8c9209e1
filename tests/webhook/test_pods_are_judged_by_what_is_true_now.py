"""When copies are believed, when the server is asked, and what happens when it does not answer."""

import asyncio
from typing import Any

import pytest

from gpumem_operator.kube.errors import ApiError
from gpumem_operator.kube.rest import RawObject
from gpumem_operator.webhook import surroundings as module
from gpumem_operator.webhook.surroundings import (
    SETTLING_SECONDS,
    Copies,
    SurroundingsReader,
    UnreadableError,
)
from webhook.builders import namespace, policy, tenant


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Server:
    """An API server whose objects the copies may lag behind; `gate` holds its answers back."""

    def __init__(self) -> None:
        self.namespaces: dict[str, RawObject] = {}
        self.policies: list[RawObject] = []
        self.tenants: list[RawObject] = []
        self.down = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = asyncio.Event()

    async def get(self, path: str, **_: object) -> RawObject:
        await self._answer()
        return self.namespaces[path.rpartition("/")[2]]

    async def list_all(self, path: str, **_: object) -> tuple[list[RawObject], str]:
        found = list(self.tenants if path.endswith("tenants") else self.policies)
        self.asked.set()
        await self._answer()
        return found, "1"

    async def _answer(self) -> None:
        await self.gate.wait()
        if self.down:
            raise ApiError("GET", "connection refused")


class World:
    """Copies that the test fills by hand, beside the server that they follow."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.server = Server()
        self.copies = Copies(self.server, self.clock)  # type: ignore[arg-type]
        self.reads = 0
        self.reader = SurroundingsReader(
            self.copies,
            self.server,  # type: ignore[arg-type]
            on_read=self._count,
        )
        for reflector in self.copies.reflectors.values():
            reflector.listed = reflector.current = True

    def _count(self) -> None:
        self.reads += 1

    def copy(self, kind: str) -> Any:
        return self.copies.reflectors[kind]._copy

    def settle(self) -> None:
        self.clock.now += SETTLING_SECONDS + 0.1

    async def found(self) -> tuple[list[str], list[str]]:
        result = await self.reader.of("team-a")
        return [p.name for p in result.policies], [t.name for t in result.tenants]


@pytest.fixture
async def world() -> World:
    world = World()
    world.server.namespaces["team-a"] = namespace("team-a")
    return world


async def test_a_namespace_at_rest_costs_no_read(world: World) -> None:
    world.copy("namespaces").put(namespace("team-a"))
    world.copy("policies").put(policy("p"))
    world.settle()
    assert await world.found() == (["p"], [])
    assert world.reads == 0


async def test_without_a_policy_or_a_tenant_the_server_is_asked_each_time(world: World) -> None:
    world.copy("namespaces").put(namespace("team-a"))
    world.settle()
    assert await world.found() == ([], [])
    world.server.policies = [policy("new")]
    assert await world.found() == (["new"], [])
    assert world.reads == 2


async def test_a_burst_is_judged_rightly_though_every_watch_lags(world: World) -> None:
    world.server.namespaces["team-a"] = namespace("team-a", team="a")
    world.server.policies, world.server.tenants = [policy("p")], [tenant("t")]
    assert await world.found() == (["p"], ["t"])


@pytest.mark.parametrize("arrived", ["policies", "tenants", "namespaces"])
@pytest.mark.parametrize("in_a_list", [False, True], ids=["by its watch", "in a list"])
async def test_one_object_of_a_burst_is_enough_to_distrust_the_copies(
    world: World, arrived: str, *, in_a_list: bool
) -> None:
    """After an outage each kind is listed at a time of its own."""
    world.copy("namespaces").put(namespace("team-a", team="old"))
    world.copy("policies").put(policy("old"))
    world.settle()
    first = {
        "policies": policy("p"),
        "tenants": tenant("t"),
        "namespaces": namespace("team-a", team="a"),
    }
    if in_a_list:
        world.copy(arrived).replace([first[arrived]])
    else:
        world.copy(arrived).put(first[arrived])
    world.server.namespaces["team-a"] = namespace("team-a", team="a")
    world.server.policies, world.server.tenants = [policy("p")], [tenant("t")]
    assert await world.found() == (["p"], ["t"])


async def test_a_status_that_changes_with_every_pod_does_not_cost_reads(world: World) -> None:
    world.copy("namespaces").put(namespace("team-a", team="a"))
    world.copy("tenants").put(tenant("t"))
    world.settle()
    world.copy("tenants").put(tenant("t") | {"status": {"chargedBytes": 5}})
    assert await world.found() == ([], ["t"])
    assert world.reads == 0


async def test_while_a_watch_is_broken_the_server_is_asked(world: World) -> None:
    world.copy("namespaces").put(namespace("team-a"))
    world.copy("policies").put(policy("deleted-meanwhile"))
    world.settle()
    world.copies.reflectors["policies"].current = False
    assert await world.found() == ([], [])


async def test_some_seconds_after_a_list_the_copies_are_believed_again(world: World) -> None:
    world.copy("tenants").replace([])
    world.copy("policies").replace([policy("p")])
    world.copy("namespaces").replace([namespace("team-a")])
    world.settle()
    assert await world.found() == (["p"], [])
    assert world.reads == 0


async def test_a_policy_that_can_not_be_read_is_no_absent_policy(world: World) -> None:
    broken = policy("broken") | {"spec": {"limits": {"min": "8GB"}}}
    world.copy("namespaces").put(namespace("team-a"))
    world.copy("policies").put(broken)
    world.settle()
    [record] = (await world.reader.of("team-a")).policies
    assert record.problem is not None


async def test_a_server_that_can_not_be_asked_is_an_error(world: World) -> None:
    world.server.down = True
    with pytest.raises(UnreadableError, match="connection refused"):
        await world.found()


async def test_a_server_that_hangs_is_an_error_before_the_webhook_times_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert module.READ_SECONDS < 2.0
    monkeypatch.setattr(module, "READ_SECONDS", 0.01)
    world.server.gate.clear()
    with pytest.raises(UnreadableError, match=r"no answer within 0\.01 s"):
        await world.found()
    world.server.gate.set()


async def test_many_pods_share_reads_that_begin_after_they_were_sent(world: World) -> None:
    world.server.gate.clear()
    first = asyncio.create_task(world.found())
    await world.server.asked.wait()
    world.server.policies = [policy("p")]
    later = [asyncio.create_task(world.found()) for _ in range(100)]
    await asyncio.sleep(0)
    world.server.gate.set()
    assert await first == ([], [])
    assert await asyncio.gather(*later) == [(["p"], [])] * 100
    assert world.reads == 2


async def test_nothing_is_kept_of_a_read(world: World) -> None:
    await world.found()
    await asyncio.sleep(0)
    assert world.reader._reads == {}

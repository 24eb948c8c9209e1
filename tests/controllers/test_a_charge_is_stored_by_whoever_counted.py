"""Webhooks give room away by the charge that is stored: nobody writes it who may miss pods."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from controllers.recording import Leads, Recorder
from controllers.stored import Raw, managed_pod, sealed, tenant
from controllers.team_cache import NAMESPACE, SEAL, status_worker, team_cache
from gpumem_operator import names
from gpumem_operator.api.quantity import GIB
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.options import Periods
from gpumem_operator.controllers.queue import QueueWorker
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.errors import NotFound
from gpumem_operator.kube.resources import PODS, TENANTS

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def known(*pods: Raw, **status: Any) -> tuple[Cache, Recorder]:
    cache = team_cache(*pods, **status)
    return cache, Server(cache, {**tenant(), "status": status}, list(pods))


class Server(Recorder):
    """Knows one tenant and its namespace, and lists pods; `pods` are found by name alone."""

    def __init__(self, cache: Cache, raw: Raw, listed: list[Raw]) -> None:
        super().__init__(cache.tenants, raw)
        self.pods: dict[str, Raw] = {}
        self.namespaces = {"team": NAMESPACE}
        self.opened: list[str] = []
        """Names of pods whose gates were taken away."""
        self.meanwhile: Callable[[], None] = lambda: None
        """What happens while tenants are read."""
        self.asked: list[str] = []
        """For one object each."""
        self._listed = listed
        self.may_list = asyncio.Event()
        self.may_list.set()

    async def request(self, method: str, path: str, **fields: Any) -> Raw:
        if method == "PATCH" and "/pods/" in path:
            name = path.rpartition("/")[2]
            self.opened.append(name)
            raise NotFound(f"PATCH {path}", "404", 404)
        return await super().request(method, path, **fields)

    async def get(self, path: str, **_: Any) -> Raw:
        if path == PODS.path():
            await self.may_list.wait()
            return {"metadata": {"resourceVersion": "9"}, "items": self._listed}
        if path == TENANTS.path():
            self.meanwhile()
            return {"items": [self._raw]}
        self.asked.append(path)
        name = path.rpartition("/")[2]
        found = {**self.pods, **self.namespaces}.get(name)
        if found is None:
            raise NotFound(f"GET {path}", "404", 404)
        return found


def a_pod(name: str = "train", *, namespace: str = "team", **fields: Any) -> Raw:
    made = managed_pod(name, policy="training", limit_bytes=8 * GIB, **fields)
    return made | {"metadata": made["metadata"] | {"namespace": namespace}}


@pytest.mark.parametrize(
    ("stored", "own", "stores"),
    [
        pytest.param(7, 7, True, id="its own epoch"),
        pytest.param(8, 7, False, id="another one leads"),
        pytest.param(6, 7, False, id="not raised yet"),
        pytest.param(7, None, False, id="pods not listed yet"),
        pytest.param(None, None, False, id="nobody has ever led"),
    ],
)
async def test_conditions_are_told_by_any_leader_and_charges_by_one_that_counted(
    stored: int | None, own: int | None, *, stores: bool
) -> None:
    status = {} if stored is None else {"epoch": stored}
    cache, api = known(a_pod(), **status)
    worker = status_worker(cache, api, now=lambda: NOW, epoch=lambda: own)
    await worker.reconcile(["team"])
    written = api.statuses[-1]
    assert written["conditions"]
    assert ({"chargedBytes", "observedGeneration"} <= written.keys()) is stores


def reserving(
    cache: Cache,
    api: Recorder,
    clock: list[float],
) -> QueueWorker:
    return QueueWorker(
        cache,
        Writer(api, Leads()),
        values=Values(),
        periods=Periods(),
        now=lambda: NOW,
        monotonic=lambda: clock[0],
    )


async def settled() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_statuses_are_looked_at_again_once_pods_were_listed() -> None:
    """Nothing else may change then: the queue has no say about a tenant that can not be read."""
    cache = team_cache()
    broken = {**tenant(), "spec": {"quota": "none"}, "status": {"chargedBytes": 8 * GIB}}
    broken["metadata"]["resourceVersion"] = "2"
    cache.tenants.see(broken)
    api = Server(cache, broken, [])
    api.may_list.clear()
    statuses = status_worker(
        cache, api, now=lambda: NOW, epoch=lambda: queue.epoch, periods=Periods(settle=0.0)
    )
    queue = reserving(cache, api, [0.0])
    queue.counted = statuses.look_at_everything
    running = [asyncio.create_task(statuses.run()), asyncio.create_task(queue.begin())]
    await settled()
    assert all("chargedBytes" not in written for written in api.statuses)
    api.may_list.set()
    await settled()
    assert api.statuses[-1]["chargedBytes"] is None
    running[0].cancel()


def row(uid: str, name: str) -> Raw:
    return {"podUID": uid, "namespace": "team", "name": name, "bytes": 8 * GIB}


async def test_charge_and_reservation_change_in_one_write() -> None:
    uid = a_pod()["metadata"]["uid"]
    cache, api = known(a_pod(), epoch=0, chargedBytes=0, reservations=[row(uid, "train")])
    await reserving(cache, api, [0.0]).turn()
    raised, written = api.statuses
    assert raised["epoch"] == 1
    assert (written["chargedBytes"], written["reservations"]) == (8 * GIB, [])


async def test_a_reservation_lapses_after_a_minute_and_only_where_there_is_no_such_pod() -> None:
    rows = [row("lost", "lost"), row("uid-of-team-late", "late")]
    cache, api = known(epoch=0, chargedBytes=0, reservations=rows)
    assert isinstance(api, Server)
    api.pods["late"] = sealed(a_pod("late"), SEAL)
    clock = [0.0]
    worker = reserving(cache, api, clock)
    await worker.turn()
    clock[0] = 59.0
    await worker.turn()
    assert api.asked == []
    clock[0] = 60.0
    await worker.turn()
    assert [one["podUID"] for one in api.statuses[-1]["reservations"]] == ["uid-of-team-late"]
    # What was read by name is known from now on, and charged in the next turn.
    await worker.turn()
    assert api.statuses[-1]["reservations"] == []
    assert api.statuses[-1]["chargedBytes"] == 8 * GIB


async def test_one_that_a_leader_had_seen_lapses_as_soon_as_it_is_not_found() -> None:
    """As for a new leader, when pods ended after the last one."""
    rows = [row("ended", "ended") | {"podState": "Seen"}, row("may-come", "may-come")]
    cache, api = known(epoch=0, chargedBytes=0, reservations=rows)
    worker = reserving(cache, api, [0.0])
    await worker.turn()
    await worker.turn()
    assert [one["podUID"] for one in api.statuses[-1]["reservations"]] == ["may-come"]


def labelled(name: str, version: int, **labels: str) -> Raw:
    metadata = {"name": name, "uid": f"uid-of-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata | {"labels": labels}}


@pytest.mark.parametrize(
    ("labels", "charged"),
    [
        pytest.param({}, 0, id="it has left the tenant"),
        pytest.param({"team": "a"}, 8 * GIB, id="the watch of namespaces is behind"),
    ],
)
async def test_room_of_a_pod_in_a_namespace_of_nobody_is_free_or_charged(
    labels: dict[str, str], charged: int
) -> None:
    """Its gate is open, and the tenant that keeps room for it does not seem to have it."""
    pod = a_pod(namespace="moving")
    kept = row(pod["metadata"]["uid"], "train") | {"namespace": "moving", "podState": "Seen"}
    status = {"epoch": 0, "chargedBytes": 0, "reservations": [kept]}
    raw = {**tenant(selector={"matchLabels": {"team": "a"}}), "status": status}
    cache = Cache(Values(), own_namespace="operator")
    cache.seal = SEAL
    cache.tenants.see(raw)
    for one in (labelled("other", 1, team="a"), labelled("moving", 1)):
        cache.namespaces.see(one)
    cache.pods.see(sealed(pod, SEAL))
    api = Server(cache, raw, [sealed(pod, SEAL)])
    api.namespaces["moving"] = labelled("moving", 2, **labels)

    worker = reserving(cache, api, [0.0])
    await worker.turn()

    written = api.statuses[-1]
    assert (written["chargedBytes"], written["reservations"]) == (charged, [])
    asked = len(api.asked)
    await worker.turn()
    assert len(api.asked) == asked, "it is asked for again and again"


async def test_a_pod_that_comes_while_others_are_asked_about_is_not_taken_for_nobodys() -> None:
    """Its namespace has come to the tenant, and the watch of namespaces is behind."""
    raw = {**tenant(selector={"matchLabels": {"team": "a"}}), "status": {"epoch": 0}}
    cache = Cache(Values(), own_namespace="operator")
    cache.seal = SEAL
    cache.tenants.see(raw)
    for one in (labelled("other", 1, team="a"), labelled("free", 1), labelled("joined", 1)):
        cache.namespaces.see(one)
    first, late = (
        sealed(a_pod(place, namespace=place, gates=(names.QUOTA_GATE,)), SEAL)
        for place in ("free", "joined")
    )
    cache.pods.see(first)
    api = Server(cache, raw, [first])
    api.namespaces |= {"free": labelled("free", 1), "joined": labelled("joined", 2, team="a")}
    api.meanwhile = lambda: cache.pods.see(late)
    worker = reserving(cache, api, [0.0])

    await worker.turn()
    opening = asyncio.create_task(worker._opener.run())
    for _ in range(20):
        await asyncio.sleep(0)
    opening.cancel()

    assert api.opened == ["free"]

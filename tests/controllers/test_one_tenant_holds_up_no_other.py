"""A tenant that is gone, or whose status can not be written, stops nobody else's queue."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from controllers.recording import Leads
from controllers.stored import Raw, managed_pod, sealed, tenant
from controllers.team_cache import SEAL, team_cache
from gpumem_operator import names
from gpumem_operator.api.quantity import GIB
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.options import Periods
from gpumem_operator.controllers.pauses import LONGEST_SECONDS
from gpumem_operator.controllers.queue import QueueWorker
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import ApiError, Conflict, NotFound

TENANTS = ("alpha", "beta")


class Server(Api):
    """Stores statuses of tenants, but those of `broken`; knows nothing of those that are `gone`."""

    def __init__(self) -> None:
        self.stored = {
            name: {**tenant(name, onExceeded="Reject"), "status": {}} for name in TENANTS
        }
        self.broken: dict[str, ApiError] = {}
        self.gone: set[str] = set()
        self.fenced: list[str] = []
        """Paths of pods that were written."""

    async def request(self, method: str, path: str, **fields: Any) -> Raw:
        return await self._patch(path, fields["body"]) if method == "PATCH" else self._get(path)

    def _get(self, path: str) -> Raw:
        name = path.rpartition("/")[2]
        if name == "pods":
            return {"metadata": {"resourceVersion": "9"}, "items": []}
        if name in self.gone:
            raise NotFound(f"GET {path}", "404", 404)
        return self.stored[name]

    async def _patch(self, path: str, body: Raw) -> Raw:
        if "/pods/" in path:
            self.fenced.append(path)
            raise NotFound(f"PATCH {path}", "404", 404)
        name = path.split("/")[-2]
        if name in self.broken:
            raise self.broken[name]
        before = self.stored[name]
        version = str(int(before["metadata"]["resourceVersion"]) + 1)
        self.stored[name] = before | {
            "metadata": before["metadata"] | {"resourceVersion": version},
            "status": before["status"] | body["status"],
        }
        return self.stored[name]


def leader(api: Server, clock: list[float]) -> tuple[Cache, QueueWorker]:
    """Of two tenants that have the same namespace."""
    cache = team_cache()
    cache.tenants.drop(("", "research"), "uid-of-research")
    for raw in api.stored.values():
        cache.tenants.see(raw)
    worker = QueueWorker(
        cache,
        Writer(api, Leads()),
        values=Values(),
        periods=Periods(),
        now=lambda: datetime(2026, 3, 1, tzinfo=UTC),
        monotonic=lambda: clock[0],
    )
    return cache, worker


def charge_one_more(cache: Cache, **fields: Any) -> None:
    pod = managed_pod("train", policy="training", limit_bytes=8 * GIB, **fields)
    metadata = pod["metadata"] | {"resourceVersion": "20"}
    cache.pods.see(sealed(pod | {"metadata": metadata}, SEAL))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(NotFound("PATCH alpha", "404", 404), id="before it was written"),
        pytest.param(Conflict("PATCH alpha", "409", 409), id="while it was written"),
    ],
)
async def test_one_that_is_gone_is_forgotten_at_once(answer: ApiError) -> None:
    """The watch may have missed that it went: nobody would tell of it before the next list."""
    api = Server()
    cache, worker = leader(api, [0.0])
    await worker.turn()
    api.broken["alpha"] = answer
    api.gone.add("alpha")
    charge_one_more(cache)
    with pytest.raises(Conflict):
        await worker.turn()
    assert cache.tenants.get(("", "alpha")) is None
    await worker.turn()
    assert api.stored["beta"]["status"]["chargedBytes"] == 8 * GIB


REFUSED = ApiError("PATCH alpha", "500 a policy of somebody", 500)


async def test_others_are_written_where_one_can_not_be() -> None:
    api, clock = Server(), [0.0]
    cache, worker = leader(api, clock)
    await worker.turn()
    api.broken["alpha"] = REFUSED
    charge_one_more(cache)
    await worker.turn()
    assert api.stored["beta"]["status"]["chargedBytes"] == 8 * GIB
    assert api.stored["alpha"]["status"]["chargedBytes"] == 0
    del api.broken["alpha"]
    await worker.turn()
    assert api.stored["alpha"]["status"]["chargedBytes"] == 0, "it is asked again at once"

    clock[0] = LONGEST_SECONDS
    worker._tenants_again()
    await worker.turn()

    assert api.stored["alpha"]["status"]["chargedBytes"] == 8 * GIB


async def test_a_leader_begins_without_one_that_it_can_not_write() -> None:
    """As after each restart, while somebody's policy engine refuses its status."""
    api, clock = Server(), [0.0]
    api.broken["alpha"] = REFUSED
    cache, worker = leader(api, clock)
    charge_one_more(cache)
    await worker.turn()
    assert worker.epoch == 1
    assert api.stored["beta"]["status"]["chargedBytes"] == 8 * GIB
    assert api.stored["alpha"]["status"] == {}

    del api.broken["alpha"]
    clock[0] = LONGEST_SECONDS
    worker._tenants_again()
    await worker.turn()

    assert api.stored["alpha"]["status"]["epoch"] == 1
    assert api.stored["alpha"]["status"]["chargedBytes"] == 8 * GIB


async def test_pods_that_need_room_of_it_keep_what_they_have_and_wait() -> None:
    api, clock = Server(), [0.0]
    cache, worker = leader(api, clock)
    await worker.turn()
    api.broken["alpha"] = REFUSED
    charge_one_more(cache, gates=(names.QUOTA_GATE,))
    for _ in range(3):
        await worker.turn()
    [kept] = api.stored["beta"]["status"]["reservations"]
    assert kept["bytes"] == 8 * GIB
    assert api.fenced == []

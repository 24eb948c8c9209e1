"""Pods that wait are told so, though Events of some of them can not be stored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from controllers.recording import Leads
from controllers.stored import Raw
from gpumem_operator.controllers.queue_events import QueueEvents
from gpumem_operator.controllers.queue_picture import Picture
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import ApiError
from gpumem_operator.ledger.book import Account
from gpumem_operator.ledger.groups import WaitingPod
from gpumem_operator.ledger.queue import decide

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Server(Api):
    """Stores Events, but not about pods that are called so."""

    def __init__(self) -> None:
        self.refusing: set[str] = set()
        self.asked: list[str] = []
        self.told: list[str] = []

    async def request(self, method: str, path: str, **fields: Any) -> Raw:  # noqa: ARG002
        name = fields["body"]["involvedObject"]["name"]
        self.asked.append(name)
        if name in self.refusing:
            raise ApiError(path, "exceeded quota: events", 403)
        self.told.append(name)
        return {}


def waits(name: str, namespace: str) -> WaitingPod:
    return WaitingPod(f"uid-{name}", namespace, name, created=0.0, needs={"research": 8})


def telling(api: Api, *pods: WaitingPod, clock: list[float]) -> QueueEvents:
    tenant = Account("research", limit_bytes=8, charged_bytes=8)
    picture = Picture(
        accounts=(tenant,),
        stored={},
        charged={"research": ()},
        waiting=pods,
        seen=frozenset(),
        opened=frozenset(),
        stray={},
        alive={},
    )
    events = QueueEvents(Writer(api, Leads()), now=lambda: NOW, monotonic=lambda: clock[0])
    events.tell(picture, decide([tenant], pods, now=0.0))
    return events


async def test_others_are_told_in_the_same_round() -> None:
    api = Server()
    many = [waits(f"a{number:03}", "full") for number in range(200)]
    api.refusing = {pod.name for pod in many}
    events = telling(api, *many, waits("z", "team"), clock=[0.0])
    await events.round()
    assert api.asked == ["a000", "z"]


async def test_one_that_fails_keeps_no_other_of_its_namespace_from_being_told() -> None:
    api, clock = Server(), [0.0]
    api.refusing = {"a"}
    events = telling(api, waits("a", "full"), waits("b", "full"), clock=clock)
    await events.round()
    await events.round()
    assert api.told == ["b"]
    api.refusing.clear()
    clock[0] = 60.0
    await events.round()
    assert api.told == ["b", "a"]

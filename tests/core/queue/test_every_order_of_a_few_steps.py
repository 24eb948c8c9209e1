"""Two webhooks, two leaders and the pods of one tenant that refuses: every order of their requests.

Random runs (`test_no_quota_is_overrun.py`) go far and miss what takes five steps in one order of
thousands. Here each world is followed into each next step, the nearest first, until none is new.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import pytest

from core.queue.model import ConflictError, Leader, Pod, Server, Tenant
from core.queue.webhook_model import Webhook

NAME = "refusing"
Step = Callable[["World"], None]


@dataclass
class World:
    """Everything that is stored, known, or on its way."""

    server: Server
    allowed: int
    webhooks: list[Webhook] = field(default_factory=list)
    leaders: list[Leader] = field(default_factory=list)
    leaders_to_come: int = 0
    may_end: bool = False

    def steps(self) -> Iterator[Step]:
        for number in range(len(self.webhooks)):
            yield partial(World.ask, number=number)
        for number, leader in enumerate(self.leaders):
            yield partial(World.lead, number=number)
            yield partial(World.tell, number=number)
            for place, pod in enumerate(self.server.history):
                known = leader.pods.get(pod.uid)
                if known is None or known.version < pod.version:
                    yield partial(World.deliver, number=number, place=place)
        if self.leaders_to_come:
            yield World.begin
        if self.may_end:
            for uid in self.server.pods:
                yield partial(World.end, uid=uid)

    def ask(self, number: int) -> None:
        self.webhooks[number].step()

    def lead(self, number: int) -> None:
        self.leaders[number].step()

    def tell(self, number: int) -> None:
        self.leaders[number].tell(NAME)

    def deliver(self, number: int, place: int) -> None:
        self.leaders[number].see(self.server.history[place])

    def begin(self) -> None:
        """Another leader, of which the first is not told."""
        self.leaders_to_come -= 1
        self.leaders.append(Leader(self.server))

    def end(self, uid: str) -> None:
        self.may_end = False
        self.server.put(replace(self.server.pods[uid], deleted=True))


def runs_already(name: str) -> Pod:
    return Pod(name, "third", 1, version=0, created=0.0, gated=False)


def asks(server: Server, *names: str) -> list[Webhook]:
    return [Webhook(server, [runs_already(name)]) for name in names]


def nobody_has_counted() -> World:
    """A tenant that is made over a pod that runs, with room for no other."""
    server = Server({NAME: Tenant(NAME, 1)})
    server.put(runs_already("old"))
    return World(server, 1, asks(server, "new"), leaders_to_come=1, may_end=True)


def one_place_is_left() -> World:
    """One leader at work, and another one to come."""
    world = counted()
    world.leaders_to_come = 1
    return world


def a_pod_ends_meanwhile() -> World:
    world = counted()
    world.may_end = True
    return world


def counted() -> World:
    server = Server({NAME: Tenant(NAME, 2)})
    server.put(runs_already("old"))
    leader = Leader(server)
    for _ in range(8):
        leader.step()
    return World(server, 2, asks(server, "a", "b"), [leader])


@pytest.mark.parametrize("begin", [nobody_has_counted, one_place_is_left, a_pod_ends_meanwhile])
def test_no_order_of_steps_overruns_the_quota(begin: Callable[[], World]) -> None:
    first = pickle.dumps(begin())
    seen, waiting = {first}, deque([first])
    let_in = set()
    while waiting:
        now = waiting.popleft()
        for step in pickle.loads(now).steps():
            world: World = pickle.loads(now)
            try:
                step(world)
            except ConflictError:
                continue
            taken = world.server.taken(NAME)
            assert taken <= world.allowed, f"{taken} of {world.allowed}"
            let_in.add(frozenset(world.server.pods))
            then = pickle.dumps(world)
            if then not in seen:
                seen.add(then)
                waiting.append(then)
    assert any(pods - {"old"} for pods in let_in), "nobody was ever let in"

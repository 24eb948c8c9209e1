"""Two webhooks, two leaders and the pods of one tenant that refuses: every order of their requests.

Random runs (`test_no_quota_is_overrun.py`) go far and miss what takes five steps in one order of
thousands. Here each world is followed into each next step, the nearest first, until none is new.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import pytest

from core.queue.model import Leader
from core.queue.small_server import COVERED, ConflictError, Pod, Server, Tenant
from core.queue.webhook_model import Webhook

NAME = "refusing"
Step = Callable[["World"], None]


@dataclass
class World:
    """Everything that is stored, known, or on its way."""

    server: Server
    allowed: Mapping[str, int]
    """Limits by tenant."""
    webhooks: list[Webhook] = field(default_factory=list)
    leaders: list[Leader] = field(default_factory=list)
    leaders_to_come: int = 0
    pods_to_come: list[Pod] = field(default_factory=list)
    may_end: bool = False
    eventful: bool = True
    """Whether events come, and charges are told, at any time: far fewer orders without."""

    def steps(self) -> Iterator[Step]:
        for number in range(len(self.webhooks)):
            yield partial(World.ask, number=number)
        for number, leader in enumerate(self.leaders):
            yield partial(World.lead, number=number)
            for place in range(len(leader.opening)):
                yield partial(World.open, number=number, place=place)
            if not self.eventful:
                continue
            for name in self.allowed:
                yield partial(World.tell, number=number, name=name)
            for place, pod in enumerate(self.server.history):
                known = leader.pods.get(pod.uid)
                if known is None or known.version < pod.version:
                    yield partial(World.deliver, number=number, place=place)
        if self.leaders_to_come:
            yield World.begin
        if self.pods_to_come:
            yield World.create
        if self.may_end:
            for uid in self.server.pods:
                yield partial(World.end, uid=uid)

    def ask(self, number: int) -> None:
        self.webhooks[number].step()

    def lead(self, number: int) -> None:
        self.leaders[number].step()

    def open(self, number: int, place: int) -> None:
        self.leaders[number].open(place)

    def tell(self, number: int, name: str) -> None:
        self.leaders[number].tell(name)

    def deliver(self, number: int, place: int) -> None:
        self.leaders[number].see(self.server.history[place])

    def begin(self) -> None:
        """Another leader, of which the first is not told."""
        self.leaders_to_come -= 1
        self.leaders.append(Leader(self.server))

    def create(self) -> None:
        self.server.put(self.pods_to_come.pop(0))

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
    return World(server, {NAME: 1}, asks(server, "new"), leaders_to_come=1, may_end=True)


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
    return World(server, {NAME: 2}, asks(server, "a", "b"), [leader])


def two_begin_at_once() -> World:
    """And choose the same epoch, because neither has stored its own yet."""
    server = Server({"a": Tenant("a", 1)})
    server.put(waits("p", "alone"))
    first = replace(waits("q", "alone"), priority=1)
    return World(server, {"a": 1}, leaders_to_come=2, pods_to_come=[first], eventful=False)


def a_namespace_comes_to_a_second_tenant() -> World:
    """While a leader that has decided about its pod is slow to open the gate."""
    server = Server({"a": Tenant("a", 1), "b": Tenant("b", 1)})
    server.put(waits("p", "first"))
    leader = Leader(server)
    while not leader.opening:
        leader.step()
    server.members = COVERED
    server.put(replace(waits("q", "second"), priority=1))
    server.put(waits("r", "alone"))
    return World(server, {"a": 1, "b": 1}, leaders=[leader], leaders_to_come=1, eventful=False)


def waits(name: str, namespace: str) -> Pod:
    return Pod(name, namespace, 1, version=0, created=0.0, gated=True)


@pytest.mark.parametrize(
    "begin",
    [
        nobody_has_counted,
        one_place_is_left,
        a_pod_ends_meanwhile,
        two_begin_at_once,
        a_namespace_comes_to_a_second_tenant,
    ],
)
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
            for name, limit in world.allowed.items():
                taken = world.server.taken(name)
                assert taken <= limit, f"{taken} of {limit} in {name}"
            let_in.add(frozenset(uid for uid, pod in world.server.pods.items() if not pod.gated))
            then = pickle.dumps(world)
            if then not in seen:
                seen.add(then)
                waiting.append(then)
    assert any(pods - {"old"} for pods in let_in), "nobody was ever let in"

"""A webhook of somebody that is silent about the pods of one namespace: others go on meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.recording import Leads
from controllers.stored import Raw, managed_pod, sealed
from gpumem_operator import names
from gpumem_operator.api.quantity import GIB
from gpumem_operator.api.seal import Seal
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.fences import Fences
from gpumem_operator.controllers.gate_opener import GateOpener
from gpumem_operator.controllers.gate_places import FIRST, MOST
from gpumem_operator.controllers.pauses import LONGEST_SECONDS, Pauses
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import ApiError, Conflict
from gpumem_operator.ledger.groups import WaitingPod
from patience import PATIENCE_SECONDS

SEAL = Seal(b"k" * 32)


class HalfSilent(Api):
    """Answers no patch of a pod in the namespace `silent`, unless it refuses it."""

    def __init__(self) -> None:
        self.refuses = False
        self.asked: asyncio.Queue[str] = asyncio.Queue()
        self.unanswered = 0

    async def request(self, method: str, path: str, **fields: Any) -> Raw:  # noqa: ARG002
        self.asked.put_nowait(path)
        if "/namespaces/silent" in path:
            if self.refuses:
                raise ApiError(path, "no webhook answered", 500)
            self.unanswered += 1
            await asyncio.Event().wait()
        return stored(path.rpartition("/")[2], "busy", gates=(), version="2")


def stored(name: str, namespace: str, *, gates: tuple[str, ...], version: str = "1") -> Raw:
    pod = managed_pod(name, policy="training", limit_bytes=GIB, gates=gates)
    own = {"namespace": namespace, "uid": f"uid-{name}", "resourceVersion": version}
    pod["metadata"] = {**pod["metadata"], **own}
    return sealed(pod, SEAL)


class Scene:
    """Pods that wait in two namespaces."""

    def __init__(self) -> None:
        self.cache = Cache(Values(), own_namespace="operator")
        self.cache.seal = SEAL
        self.api = HalfSilent()
        self.writer = Writer(self.api, Leads())

    def waits(self, name: str, namespace: str) -> WaitingPod:
        self.cache.pods.see(stored(name, namespace, gates=(names.QUOTA_GATE,)))
        return WaitingPod(f"uid-{name}", namespace, name, created=0.0, needs={}, version=1)

    async def asked_for(self, name: str) -> list[str]:
        """Pods whose patches were sent until this one's was."""
        found: list[str] = []
        async with asyncio.timeout(PATIENCE_SECONDS):
            while name not in found:
                found.append((await self.api.asked.get()).rpartition("/")[2])
        return found

    async def nothing_more_is_asked(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        assert self.api.asked.empty()


async def test_gates_of_other_namespaces_are_opened() -> None:
    scene = Scene()
    opener = GateOpener(scene.cache, scene.writer, Pauses(1.0, again=lambda: None))
    running = asyncio.create_task(opener.run())
    silent = [scene.waits(f"s{number:02}", "silent") for number in range(30)]
    opener.open(silent)
    await scene.asked_for("s00")

    opener.open([*silent, scene.waits("next", "busy")])

    asked = await scene.asked_for("next")
    row = scene.cache.pods.get(("busy", "next"))
    assert row is not None
    assert not row.value.gated
    assert len([name for name in asked if name.startswith("s")]) < len(silent)
    running.cancel()


async def test_a_namespace_whose_patches_fail_gets_one_at_a_time() -> None:
    scene = Scene()
    failed = asyncio.Event()
    opener = GateOpener(scene.cache, scene.writer, Pauses(0.0, again=failed.set))
    running = asyncio.create_task(opener.run())
    scene.api.refuses = True
    opener.open([scene.waits("first", "silent")])
    async with asyncio.timeout(PATIENCE_SECONDS):
        await failed.wait()
    await scene.asked_for("first")
    scene.api.refuses = False

    others = [scene.waits(f"s{number:02}", "silent") for number in range(30)]
    opener.open([scene.waits("first", "silent"), *others, scene.waits("next", "busy")])

    # Who was served longest ago is first, and "next" never was.
    assert [*await scene.asked_for("next"), *await scene.asked_for("first")] == ["next", "first"]
    await scene.nothing_more_is_asked()
    running.cancel()


async def test_pods_that_are_gone_earn_their_namespace_no_places() -> None:
    """Nobody's webhook was asked about them."""
    scene = Scene()
    opener = GateOpener(scene.cache, scene.writer, Pauses(1.0, again=lambda: None))
    running = asyncio.create_task(opener.run())
    gone = [scene.waits(f"g{number:02}", "silent") for number in range(12)]
    for pod in gone:
        scene.cache.pods.drop((pod.namespace, pod.name), pod.uid)
    opener.open(gone)
    await scene.nothing_more_is_asked()

    opener.open([scene.waits(f"s{number:02}", "silent") for number in range(30)])

    await scene.asked_for(f"s{FIRST - 1:02}")
    await scene.nothing_more_is_asked()
    running.cancel()


async def test_many_silent_namespaces_hold_up_nobody() -> None:
    scene = Scene()
    opener = GateOpener(scene.cache, scene.writer, Pauses(1.0, again=lambda: None))
    running = asyncio.create_task(opener.run())
    opener.open([scene.waits("before", "busy")])
    await scene.asked_for("before")
    silent = [scene.waits(f"s{number:03}", f"silent-{number % 20}") for number in range(20 * MOST)]
    opener.open(silent)
    await scene.asked_for("s000")
    opener.open([*silent, scene.waits("next", "busy")])
    await scene.asked_for("next")
    assert scene.api.unanswered < MOST
    running.cancel()


async def test_a_patch_on_its_way_is_not_sent_again() -> None:
    scene = Scene()
    opener = GateOpener(scene.cache, scene.writer, Pauses(1.0, again=lambda: None))
    running = asyncio.create_task(opener.run())
    hangs = scene.waits("hangs", "silent")
    opener.open([hangs])
    await scene.asked_for("hangs")
    opener.open([hangs, scene.waits("next", "busy")])
    assert await scene.asked_for("next") == ["next"]
    running.cancel()


async def test_who_can_not_be_fenced_in_time_keeps_its_room(monkeypatch: Any) -> None:
    monkeypatch.setattr("gpumem_operator.controllers.fences._SECONDS", 0.01)
    scene = Scene()
    fences = Fences(scene.cache, scene.writer, Pauses(1.0, again=lambda: None))
    pods = [scene.waits("hangs", "silent"), scene.waits("other", "busy")]
    assert await fences.put(pods, epoch=3) == {"uid-hangs"}


async def test_nothing_is_left_on_its_way_where_one_changed_meanwhile(monkeypatch: Any) -> None:
    """The turn is taken again at once, and fences the others again where it has to."""
    monkeypatch.setattr("gpumem_operator.controllers.fences._SECONDS", 0.01)
    scene = Scene()
    fences = Fences(scene.cache, scene.writer, Pauses(1.0, again=lambda: None))
    pods = [scene.waits("changed", "busy"), scene.waits("hangs", "silent")]
    scene.cache.pods.see(stored("changed", "busy", gates=(names.QUOTA_GATE,), version="2"))
    before = asyncio.all_tasks()
    with pytest.raises(Conflict):
        await fences.put(pods, epoch=3)
    assert asyncio.all_tasks() == before


async def test_what_fails_again_and_again_is_left_alone_for_longer_and_longer() -> None:
    clock = [0.0]
    pauses = Pauses(1.0, again=lambda: None, monotonic=lambda: clock[0])
    assert [pauses.begin("a") for _ in range(8)] == [1, 2, 4, 8, 16, 30, 30, LONGEST_SECONDS]
    assert not pauses.is_over("a")
    assert pauses.is_over("b")
    clock[0] = LONGEST_SECONDS
    assert pauses.is_over("a")
    pauses.keep(())
    assert pauses.begin("a") == 1

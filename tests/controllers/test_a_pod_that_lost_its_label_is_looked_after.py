"""The watch and lists show labelled pods only: one that they miss is asked for by name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from controllers.recording import Leads
from controllers.stored import Raw, managed_pod, sealed
from controllers.team_cache import SEAL, team_cache
from gpumem_operator import names
from gpumem_operator.api.quantity import GIB
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.labels import LabelWorker
from gpumem_operator.controllers.options import Periods
from gpumem_operator.controllers.table import Key
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import NotFound
from patience import PATIENCE_SECONDS

KEY: Key = ("team", "train")
UID = "uid-of-team-train"


def as_stored(*, version: int = 1, labelled: bool = True) -> Raw:
    pod = managed_pod("train", policy="training", limit_bytes=8 * GIB)
    pod["metadata"]["resourceVersion"] = str(version)
    if not labelled:
        del pod["metadata"]["labels"][names.MANAGED_LABEL]
    return pod


class Server(Api):
    """Has one pod, or none; keeps the labels that are written into it."""

    def __init__(self) -> None:
        self.pod: Raw | None = None
        self.asked = asyncio.Event()
        self.labelled: list[str] = []

    async def get(self, path: str, **_: Any) -> Raw:
        if not path.endswith("/train"):
            return {"metadata": {"resourceVersion": "9"}, "items": []}
        self.asked.set()
        if self.pod is None:
            raise NotFound(f"GET {path}", "404", 404)
        return self.pod

    async def request(self, method: str, path: str, **fields: Any) -> Raw:  # noqa: ARG002
        self.labelled.append(fields["body"]["metadata"]["labels"][names.MANAGED_LABEL])
        return {}


class Scene:
    """A leader whose watch said that its one pod was deleted."""

    def __init__(self) -> None:
        self.cache: Cache = team_cache(as_stored())
        self.api = Server()
        writer = Writer(self.api, Leads())
        self.worker = LabelWorker(self.cache, writer, values=Values(), periods=Periods())

    async def is_known_after_a_look(self) -> bool:
        self.cache.depart(KEY, UID)
        return await self._is_known_once_asked()

    async def is_known_after_a_list(self) -> bool:
        """One that does not show the pod."""
        await self.cache.list_pods(self.api)
        return await self._is_known_once_asked()

    async def _is_known_once_asked(self) -> bool:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.api.asked.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        return self.cache.pods.get(KEY) is not None


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    scene = Scene()
    running = asyncio.create_task(scene.worker.run())
    await asyncio.sleep(0)
    yield scene
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_one_that_is_gone_is_forgotten(scene: Scene) -> None:
    assert not await scene.is_known_after_a_look()


async def test_one_that_lost_its_label_gets_it_back_and_is_charged_on(scene: Scene) -> None:
    scene.api.pod = sealed(as_stored(version=2, labelled=False), SEAL)
    assert await scene.is_known_after_a_look()
    assert scene.api.labelled == ["true"]


async def test_one_whose_label_is_back_already_is_charged_on(scene: Scene) -> None:
    """The watch may have told of it before: it is not told again."""
    scene.api.pod = sealed(as_stored(version=3), SEAL)
    assert await scene.is_known_after_a_look()
    assert scene.api.labelled == []


async def test_one_that_a_list_does_not_show_is_charged_until_it_is_known_to_be_gone(
    scene: Scene,
) -> None:
    """The watch may not have told of it yet, or have missed it."""
    scene.api.pod = sealed(as_stored(version=2, labelled=False), SEAL)
    assert await scene.is_known_after_a_list()
    assert scene.api.labelled == ["true"]
    scene.api.pod = None
    scene.api.asked.clear()
    assert not await scene.is_known_after_a_list()


async def test_a_namesake_takes_the_place_of_one_that_is_gone(scene: Scene) -> None:
    other = sealed(as_stored(version=4), SEAL)
    other["metadata"]["uid"] = "another"
    scene.api.pod = other
    scene.cache.pods.see(other)
    assert await scene.is_known_after_a_look()

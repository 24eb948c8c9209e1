"""Pods that slipped past are labelled, whatever somebody's webhook does to some of them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from controllers.recording import Leads
from controllers.stored import Raw, pod
from controllers.team_cache import team_cache
from gpumem_operator import names
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.labels import LabelWorker
from gpumem_operator.controllers.options import Periods
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import ApiError
from patience import PATIENCE_SECONDS


class Server(Api):
    """Has unlabelled pods; a change of one in `refusing` is answered by nobody."""

    def __init__(self, *pods: Raw) -> None:
        self.pods = list(pods)
        self.refusing: set[str] = set()
        """Names."""
        self.asked: asyncio.Queue[str] = asyncio.Queue()
        self.labelled: dict[str, str] = {}

    async def request(self, method: str, path: str, **fields: Any) -> Raw:
        if method == "GET":
            left = [pod for pod in self.pods if pod["metadata"]["name"] not in self.labelled]
            return {"metadata": {"resourceVersion": "9"}, "items": left}
        name = path.rpartition("/")[2]
        self.asked.put_nowait(name)
        if name in self.refusing:
            raise ApiError(f"PATCH {path}", "no answer within 15 s")
        self.labelled[name] = fields["body"]["metadata"]["labels"][names.MANAGED_LABEL]
        return {}

    def tried(self) -> list[str]:
        return [self.asked.get_nowait() for _ in range(self.asked.qsize())]


SILENT = [f"s{number}" for number in range(5)]


def leader(*known: Raw) -> tuple[Server, LabelWorker]:
    server = Server(*(pod(name, namespace="silent") for name in SILENT), pod("last"))
    cache = team_cache(*known)
    cache.namespaces.see({"metadata": {"name": "silent", "uid": "s", "resourceVersion": "1"}})
    periods = Periods(settle=0.0, retry=0.0)
    return server, LabelWorker(cache, Writer(server, Leads()), values=Values(), periods=periods)


async def test_others_are_labelled_after_one_failure() -> None:
    server, worker = leader()
    server.refusing.update(SILENT)
    await worker.sweep()
    # Each takes as long as a request may.
    assert server.tried() == ["s0", "last"]
    assert server.labelled == {"last": "false"}


async def test_one_that_fails_keeps_none_of_its_namespace_from_its_turn() -> None:
    server, worker = leader()
    server.refusing.update(SILENT)
    tried = []
    for _ in range(2 * len(SILENT)):
        await worker.sweep()
        tried += [name for name in server.tried() if name != "last"]
    assert tried == [*SILENT, *SILENT]
    server.refusing = {"s0"}
    await worker.sweep()
    await worker.sweep()
    assert server.labelled.keys() == {"last", *SILENT} - {"s0"}


async def test_a_wrong_label_that_could_not_be_written_is_tried_again() -> None:
    """One that is there is found by no list of unlabelled pods."""
    server, worker = leader(pod("forged", labels={names.MANAGED_LABEL: "true"}))
    server.refusing.add("forged")
    running = asyncio.create_task(worker.run())
    tried = 0
    async with asyncio.timeout(PATIENCE_SECONDS):
        while tried < 3:
            tried += await server.asked.get() == "forged"
        server.refusing.clear()
        while "forged" not in server.labelled:
            await server.asked.get()
    assert server.labelled["forged"] == "false"
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running

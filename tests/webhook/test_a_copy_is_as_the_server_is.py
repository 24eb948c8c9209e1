"""Reflectors against a server that says what the test wants, event by event."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from gpumem_operator.kube.errors import ApiError, Gone, NotFound
from gpumem_operator.kube.reflector import Reflector
from gpumem_operator.kube.rest import RawObject
from webhook.builders import policy

END = object()
"""The server ends the watch, as it does every minute."""


class Server:
    """Lists `objects`; its watches say what is put into `script`."""

    def __init__(self, *objects: RawObject) -> None:
        self.objects = list(objects)
        self.script: asyncio.Queue[Any] = asyncio.Queue()
        self.lists = 0
        self.asked: asyncio.Queue[int] = asyncio.Queue()
        """The number of each list, when it is asked for."""
        self.watched_since: list[str] = []
        self.list_error: ApiError | None = None

    async def list_all(self, _path: str, /, **_: object) -> tuple[list[RawObject], str]:
        self.lists += 1
        self.asked.put_nowait(self.lists)
        if self.list_error is not None:
            raise self.list_error
        return list(self.objects), str(100 * self.lists)

    async def watch(self, _path: str, /, *, since: str, **_: object) -> AsyncIterator[RawObject]:
        self.watched_since.append(since)
        while (event := await self.script.get()) is not END:
            if isinstance(event, Exception):
                raise event
            yield event


class Names:
    """A copy that keeps names only, and tells when something was done to it."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.touched: asyncio.Queue[str] = asyncio.Queue()

    def replace(self, objects: Sequence[RawObject]) -> None:
        self.names = {raw["metadata"]["name"] for raw in objects}
        self.touched.put_nowait("replace")

    def put(self, raw: RawObject) -> None:
        self.names.add(raw["metadata"]["name"])
        self.touched.put_nowait("put")

    def drop(self, raw: RawObject) -> None:
        self.names.discard(raw["metadata"]["name"])
        self.touched.put_nowait("drop")


def event(kind: str, name: str, version: str = "1") -> dict[str, Any]:
    return {"type": kind, "object": policy(name, version=version)}


class Following:
    """A reflector that runs until the end of the block."""

    def __init__(self, server: Server) -> None:
        self.copy = Names()
        self.reflector = Reflector(server, "/policies", self.copy, retry_seconds=0.01)

    async def __aenter__(self) -> "Following":
        self._task = asyncio.create_task(self.reflector.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def next(self) -> str:
        async with asyncio.timeout(10):
            return await self.copy.touched.get()


async def test_an_empty_list_counts_as_listed() -> None:
    async with Following(Server()) as following:
        assert await following.next() == "replace"
        assert following.reflector.listed
        assert following.copy.names == set()


async def test_events_change_the_copy() -> None:
    server = Server(policy("a"))
    async with Following(server) as following:
        await following.next()
        server.script.put_nowait(event("ADDED", "b"))
        server.script.put_nowait({"type": "BOOKMARK", "object": policy("x", version="7")})
        server.script.put_nowait(event("DELETED", "a"))
        assert [await following.next(), await following.next()] == ["put", "drop"]
        assert following.copy.names == {"b"}


async def test_the_next_watch_goes_on_where_the_last_one_ended() -> None:
    server = Server()
    async with Following(server) as following:
        await following.next()
        server.script.put_nowait({"type": "BOOKMARK", "object": policy("x", version="142")})
        server.script.put_nowait(END)
        server.script.put_nowait(event("ADDED", "b"))
        await following.next()
    assert (server.watched_since, server.lists) == (["100", "142"], 1)


async def test_what_was_deleted_while_nobody_watched_is_gone_from_the_copy() -> None:
    server = Server(policy("a"), policy("b"))
    async with Following(server) as following:
        await following.next()
        server.objects = [policy("b")]
        server.script.put_nowait(Gone("watch", "too old resource version", 410))
        assert await following.next() == "replace"
        assert following.copy.names == {"b"}


async def test_a_copy_whose_watch_broke_is_not_current_until_it_is_listed_again() -> None:
    server = Server(policy("a"))
    async with Following(server) as following:
        await following.next()
        assert following.reflector.current
        server.list_error = ApiError("GET", "connection refused")
        server.script.put_nowait(ApiError("watch", "connection reset"))
        await server.asked.get()
        await server.asked.get()
        assert (following.reflector.listed, following.reflector.current) == (True, False)
        server.list_error = None
        assert await following.next() == "replace"
        assert following.reflector.current


async def test_a_kind_that_is_installed_later_is_listed_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server(policy("a"))
    server.list_error = NotFound("GET", "the server could not find the requested resource", 404)
    async with Following(server) as following:
        while await server.asked.get() < 5:
            pass
        assert not following.reflector.listed
        server.list_error = None
        await following.next()
        assert following.reflector.listed
    assert caplog.text.count("can not be followed") == 1

"""Between us and the API server there may be somebody who answers in words of their own."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from gpumem_operator.kube.connection import Connection
from gpumem_operator.kube.errors import ApiError, Conflict, Gone, NotFound, refused
from gpumem_operator.kube.rest import Api
from patience import PATIENCE_SECONDS


@pytest.mark.parametrize(
    "content",
    [
        b'{"kind":"Status","message":"try later"}',
        b"<html>try later</html>",
        b'"try later"',
        b'["try later"]',
        b"5",
        b"null",
        b"{}",
        b'{"message":"try later","details":"none"}',
        b'{"message":"try later","details":{"causes":["none"]}}',
        b"\xff",
        b"",
    ],
)
@pytest.mark.parametrize(
    ("status", "kind"), [(404, NotFound), (409, Conflict), (410, Gone), (502, ApiError)]
)
def test_it_is_told_with_its_status(content: bytes, status: int, kind: type[ApiError]) -> None:
    error = refused("GET /api", content, status)
    assert type(error) is kind
    assert error.status == status
    assert str(error).startswith(f"GET /api: {status}")


@pytest.mark.parametrize("body", [b"<html>well</html>", b'"well"', b"[]", b"null", b""])
async def test_an_answer_that_is_no_object_is_an_error_too(body: bytes) -> None:
    async with served(body) as server, Api(Connection(server)) as api:
        with pytest.raises(ApiError, match="no JSON object"):
            await api.get("/api", seconds=PATIENCE_SECONDS)


async def test_a_watch_that_brings_no_object_is_an_error_too() -> None:
    async with served(b"<html>\n</html>\n") as server, Api(Connection(server)) as api:
        with pytest.raises(ApiError, match="no JSON object"):
            [event async for event in api.watch("/api", since="1")]


@asynccontextmanager
async def served(body: bytes) -> AsyncIterator[str]:
    """The address of a server that answers everything so, with status 200."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=body)

    application = web.Application()
    application.add_routes([web.get("/api", answer)])
    runner = web.AppRunner(application)
    await runner.setup()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        await web.SockSite(runner, listener).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        await runner.cleanup()

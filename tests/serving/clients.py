"""A small server behind a listener, and clients that are slow, silent or fine."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from aiohttp import web

from devcluster.pki import Authority
from gpumem_operator.kube.connection import load_pair
from gpumem_operator.serving.listener import Listener
from gpumem_operator.serving.places import Limits

HEAD = b"POST /echo HTTP/1.1\r\nHost: x\r\n"
LARGE = 64 * 2**20
"""More than all buffers between two processes hold."""
PATIENT = Limits(
    most=50,
    most_of_address=20,
    most_bytes=2**20,
    kept=50,
    head_seconds=60,
    body_seconds=60,
    answer_seconds=60,
)


class Served(NamedTuple):
    """Where a server listens."""

    port: int
    listener: Listener
    tls: ssl.SSLContext | None

    async def connect(
        self, source: str = "127.0.0.1"
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection whose handshake is over."""
        return await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=self.tls, local_addr=(source, 0)
        )

    async def connect_only(
        self, source: str = "127.0.0.1"
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection that says nothing, not even the begin of a handshake."""
        return await asyncio.open_connection("127.0.0.1", self.port, local_addr=(source, 0))


async def _echo(request: web.Request) -> web.Response:
    return web.Response(body=await request.read())


async def _large(_: web.Request) -> web.Response:
    return web.Response(body=bytes(LARGE))


async def _unread(_: web.Request) -> web.Response:
    return web.Response(status=401)


@asynccontextmanager
async def serving(limits: Limits, *, tls: bool = True) -> AsyncIterator[Served]:
    application = web.Application(client_max_size=0)
    application.add_routes(
        [web.post("/echo", _echo), web.get("/large", _large), web.post("/unread", _unread)]
    )
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    context, asking = _contexts() if tls else (None, None)
    listener = Listener("test", runner.server, limits=limits, context=context)
    try:
        yield Served(listener.start("127.0.0.1", 0), listener, asking)
    finally:
        listener.close()
        await runner.cleanup()


def _contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    authority = Authority()
    pair = authority.server("test", dns=[], addresses=["127.0.0.1"])
    serving_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pair(serving_context, pair.certificate, pair.key)
    asking = ssl.create_default_context(cadata=authority.pair.certificate.decode())
    return serving_context, asking


async def until_cut(reader: asyncio.StreamReader) -> None:
    """Wait for the other side to end the connection, whatever it says before."""
    with suppress(ConnectionError, ssl.SSLError):
        while await reader.read(2**16):
            pass


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of one answer with a length."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split()[0])
    return int(head.split()[1]), await reader.readexactly(length)


async def until(look: Callable[[], bool]) -> None:
    """Wait for what no event tells."""
    while not look():  # noqa: ASYNC110
        await asyncio.sleep(0.01)

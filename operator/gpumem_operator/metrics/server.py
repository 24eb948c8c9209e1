"""The plain HTTP endpoint of every role: `/healthz`, `/readyz` and `/metrics`.

It answers from the process's own event loop on purpose: a loop that is blocked must look dead.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.exposition import choose_encoder

from gpumem_operator.metrics.detail import PROCESSES
from gpumem_operator.serving.listener import Listener
from gpumem_operator.serving.places import Limits

_SHUTDOWN_SECONDS: Final = 1.0
"""A scraper that keeps its connection open must not hold up the end of the process."""
_KEEP_ALIVE_SECONDS: Final = 150.0
"""Longer than scrapers usually pause."""

LIMITS: Final = Limits(
    # Probes and a few scrapers, of whom each wants some MiB.
    most=32,
    most_of_address=16,
    most_bytes=2**20,
    kept=32,
)

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serve(
    host: str,
    port: int,
    *,
    ready: Callable[[], str | None],
    lapsed: Callable[[], str | None] = lambda: None,
    registry: CollectorRegistry = REGISTRY,
) -> AsyncIterator[int]:
    """Serve until the block ends; yields the port, which is useful where `port` is 0.

    `ready` returns None, or the reason why the process is not ready, which `/readyz` then answers
    with status 503; `lapsed` the same for `/metrics`, where numbers would be those of a time when
    this process still led. Raises OSError where the address is taken.
    """
    application = web.Application()
    application.add_routes(
        [
            web.get("/healthz", _healthz),
            web.get("/readyz", _readyz(ready)),
            web.get("/metrics", _metrics(registry, lapsed)),
        ]
    )
    runner = web.AppRunner(
        application,
        access_log=None,
        shutdown_timeout=_SHUTDOWN_SECONDS,
        keepalive_timeout=_KEEP_ALIVE_SECONDS,
    )
    await runner.setup()
    listener = Listener("health", runner.server, limits=LIMITS)
    try:
        yield listener.start(host, port)
    finally:
        listener.close()
        await runner.cleanup()


async def _healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def _readyz(ready: Callable[[], str | None]) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        reason = ready()
        if reason is None:
            return web.Response(text="ok\n")
        return web.Response(status=503, text=f"not ready: {reason}\n")

    return answer


def _metrics(registry: CollectorRegistry, lapsed: Callable[[], str | None]) -> Answer:
    async def answer(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        wanted = PROCESSES.set(request.query.get("processes") == "true")
        try:
            body = encode(registry)
        finally:
            PROCESSES.reset(wanted)
        # Asked last: the process may have been stopped while the numbers were put together.
        if (reason := lapsed()) is not None:
            return web.Response(status=503, text=f"numbers of the past: {reason}\n")
        return web.Response(body=body, headers={"Content-Type": content_type})

    return answer

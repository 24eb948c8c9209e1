"""Metrics pages of pods, over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from fractions import Fraction

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from controllers.stored import pod
from gpumem_operator.api.scaling import EngineSignal
from gpumem_operator.api.values import Values
from gpumem_operator.controllers import engine_signals
from gpumem_operator.controllers.engine_signals import EngineSignals, address_of
from gpumem_operator.controllers.entries import PodEntry, pod_entry
from scaling_builders import SIGNAL

METRIC = "vllm:kv_cache_usage_perc"
PAGE = f'# TYPE {METRIC} gauge\n{METRIC}{{engine="0"}} 0.75\n'
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def engine(
    answer: Answer, *, seconds: float = 30.0
) -> AsyncIterator[tuple[str, EngineSignals]]:
    """An engine that answers so, and whoever asks it within so many seconds."""
    application = web.Application()
    application.router.add_get("/metrics", answer)
    async with TestServer(application) as server, aiohttp.ClientSession() as session:
        yield str(server.make_url("/metrics")), EngineSignals(session, seconds=seconds)


async def test_the_metric_is_read() -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text=PAGE)

    async with engine(page) as (url, signals):
        assert await signals.read(url, METRIC) == Fraction(3, 4)
        assert await signals.read(url, "other") == "NoSuchMetric"


async def test_a_silent_engine_costs_its_deadline_and_no_more() -> None:
    over = asyncio.Event()

    async def silent(_: web.Request) -> web.Response:
        await over.wait()
        return web.Response(text=PAGE)

    async with engine(silent, seconds=0.05) as (url, signals):
        assert await signals.read(url, METRIC) == "Timeout"
        over.set()


async def test_an_endless_page_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_signals, "LARGEST_PAGE", 2**17)

    async def endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            while True:
                await answer.write(b"#" * 2**16)
        except (ConnectionError, aiohttp.ClientConnectionResetError):
            return answer

    async with engine(endless) as (url, signals):
        assert await signals.read(url, METRIC) == "TooLarge"


async def test_a_redirect_is_not_followed() -> None:
    async def elsewhere(_: web.Request) -> web.Response:
        raise web.HTTPFound("http://192.0.2.1/metrics")

    async with engine(elsewhere) as (url, signals):
        assert await signals.read(url, METRIC) == "Status302"


async def test_a_failing_and_a_missing_engine_are_told_apart() -> None:
    async def failing(_: web.Request) -> web.Response:
        return web.Response(status=503)

    async with engine(failing) as (url, signals):
        assert await signals.read(url, METRIC) == "Status503"
    async with aiohttp.ClientSession() as session:
        assert await EngineSignals(session).read(url, METRIC) == "NotReached"


def at(address: str | None, *, phase: str = "Running") -> PodEntry:
    raw = pod(phase=phase)
    raw["status"]["podIP"] = address
    return pod_entry(raw, Values())


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("fd00::7", "[fd00::7]"),
        (None, None),
        ("", None),
        ("127.0.0.1", None),
        ("::1", None),
        ("169.254.169.254", None),
        ("fe80::1", None),
        ("0.0.0.0", None),
        ("224.0.0.1", None),
        ("metadata.internal", None),
    ],
)
def test_only_addresses_of_pods_are_asked(address: str | None, host: str | None) -> None:
    assert address_of(at(address)) == host


async def test_pods_that_have_not_started_are_not_asked() -> None:
    async with aiohttp.ClientSession() as session:
        signals = EngineSignals(session)
        asked = [at("127.0.0.1"), at("10.0.0.1", phase="Pending")]
        found = await signals.of_pods(asked[1:], EngineSignal.model_validate(SIGNAL))
        assert found == {}
        found = await signals.of_pods(asked[:1], EngineSignal.model_validate(SIGNAL))
        assert list(found.values()) == ["NoAddress"]

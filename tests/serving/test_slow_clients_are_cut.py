"""Clients over real sockets: who is too slow is cut, who is slow but fine gets an answer."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from math import inf

import pytest

from serving.clients import HEAD, PATIENT, Served, answer, serving, until, until_cut


@pytest.fixture(params=[True, False], ids=["TLS", "plain"])
def tls(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


async def echo(served: Served) -> None:
    """Whoever comes now is served."""
    reader, writer = await served.connect()
    writer.write(HEAD + b"Content-Length: 4\r\n\r\nping")
    assert await answer(reader) == (200, b"ping")
    writer.close()


async def test_a_connection_that_says_nothing_is_cut(tls: bool) -> None:
    async with serving(replace(PATIENT, head_seconds=0.1), tls=tls) as served:
        reader, writer = await served.connect_only()
        await until_cut(reader)
        writer.close()
        assert len(served.listener.places) == 0
        assert served.listener.connections == {}


async def test_a_head_that_trickles_is_cut(tls: bool) -> None:
    async with serving(replace(PATIENT, head_seconds=0.5), tls=tls) as served:
        reader, writer = await served.connect()
        cut = asyncio.create_task(until_cut(reader))
        writer.write(HEAD)
        while not cut.done():
            writer.write(b"X-More: 1\r\n")
            await asyncio.wait({cut}, timeout=0.05)
        writer.close()


async def test_a_later_head_has_a_deadline_too() -> None:
    async with serving(replace(PATIENT, head_seconds=0.5)) as served:
        reader, writer = await served.connect()
        writer.write(HEAD + b"Content-Length: 4\r\n\r\nping")
        assert await answer(reader) == (200, b"ping")
        writer.write(b"POST")
        await until_cut(reader)
        writer.close()


async def test_a_body_that_does_not_come_is_cut(tls: bool) -> None:
    async with serving(replace(PATIENT, body_seconds=0.1), tls=tls) as served:
        reader, writer = await served.connect()
        writer.write(HEAD + b"Content-Length: 4\r\n\r\npin")
        await until_cut(reader)
        writer.close()
        await echo(served)


async def test_an_answer_that_is_not_taken_is_cut(tls: bool) -> None:
    async with serving(replace(PATIENT, answer_seconds=0.1), tls=tls) as served:
        _, writer = await served.connect()
        writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        await until(lambda: len(served.listener.places) == 1)
        # Nothing is read here: the server must free the place by itself.
        await until(lambda: not len(served.listener.places))
        writer.transport.abort()


async def test_a_sender_that_is_slow_and_fine_gets_its_answer(tls: bool) -> None:
    async with serving(PATIENT, tls=tls) as served:
        reader, writer = await served.connect()
        for part in (HEAD, b"Content-Length: 4\r\n\r\n", b"p", b"i", b"n", b"g"):
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.1)
        assert await answer(reader) == (200, b"ping")
        writer.close()


async def test_work_that_takes_long_is_not_the_clients_fault() -> None:
    async with serving(replace(PATIENT, head_seconds=0.5, body_seconds=0.0)) as served:
        go_on = asyncio.Event()
        handle = served.listener._handle

        async def wait_first(request):  # type: ignore[no-untyped-def]
            await request.read()
            await go_on.wait()
            return await handle(request)

        served.listener._handle = wait_first
        reader, writer = await served.connect()
        writer.write(HEAD + b"Content-Length: 4\r\n\r\nping")
        await until(lambda: any(place.deadline == inf for place in served.listener.places))
        go_on.set()
        assert await answer(reader) == (200, b"ping")
        writer.close()


async def test_silent_connections_of_one_address_leave_room_for_everybody(tls: bool) -> None:
    async with serving(PATIENT, tls=tls) as served:
        silent = []
        for _ in range(200):
            with suppress(ConnectionError):
                silent.append(await served.connect_only())
        assert len(served.listener.places) <= 20
        await echo(served)
        reader, writer = await served.connect("127.0.0.2")
        writer.write(HEAD + b"Content-Length: 4\r\n\r\nping")
        assert await answer(reader) == (200, b"ping")
        for _, each in (*silent, (reader, writer)):
            each.close()


async def test_a_large_request_does_not_fill_the_memory(tls: bool) -> None:
    async with serving(replace(PATIENT, most_bytes=2**20), tls=tls) as served:
        reader, writer = await served.connect()
        writer.write(HEAD + b"Content-Length: 9000000\r\n\r\n" + bytes(3 * 2**20))
        await until_cut(reader)
        writer.close()
        await echo(served)


async def test_requests_ahead_of_answers_end_the_connection() -> None:
    async with serving(PATIENT) as served:
        reader, writer = await served.connect()
        asked = asyncio.Event()
        handle = served.listener._handle

        async def ask_again_first(request):  # type: ignore[no-untyped-def]
            await request.read()
            asked.set()
            connection = served.listener.by_protocol[request.protocol]
            await until(lambda: connection.is_last)
            return await handle(request)

        served.listener._handle = ask_again_first
        writer.write(HEAD + b"Content-Length: 4\r\n\r\nping")
        await asked.wait()
        writer.write(HEAD)
        assert await answer(reader) == (200, b"ping")
        await until_cut(reader)
        writer.close()


async def test_a_refused_body_gets_its_answer_and_then_the_end() -> None:
    async with serving(PATIENT) as served:
        reader, writer = await served.connect()
        head = HEAD.replace(b"/echo", b"/unread")
        writer.write(head + b"Content-Length: 900000\r\n\r\n" + bytes(900_000))
        assert (await answer(reader))[0] == 401
        await until_cut(reader)
        writer.close()


async def test_what_is_not_http_is_no_trace_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(PATIENT) as served:
        with caplog.at_level(logging.DEBUG, logger="aiohttp.server"):
            reader, writer = await served.connect()
            writer.write(b"GET / HTTP/1.1\r\nA" + b"a" * 20_000 + b": 1\r\n\r\n")
            assert (await answer(reader))[0] == 400
            writer.close()
        assert "Traceback" not in caplog.text


async def test_a_handshake_that_fails_frees_its_place() -> None:
    async with serving(PATIENT) as served:
        reader, writer = await served.connect_only()
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await until_cut(reader)
        writer.close()
        await until(lambda: not len(served.listener.places))
        assert served.listener.connections == {}

"""Whatever is sent, the endpoint answers with a status that means something, and goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp
from hypothesis import given, settings
from hypothesis import strategies as st

from gpumem_operator.intake.server import REPORTS_PATH
from intake.endpoint import FULL, Clock, Reviewer, json_values, send, serving, spoiled, token
from report_builders import Raw, process, raw_report

EXPECTED = {200, 400, 401, 403, 409, 413, 429}


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=200), spoiled(), json_values.map(
    lambda value: json.dumps(value).encode()
)), min_size=1, max_size=8))  # fmt: skip
def test_any_body_is_answered_and_the_next_good_one_is_taken(bodies: list[bytes]) -> None:
    async def work() -> None:
        async with serving() as (client, store):
            for body in bodies:
                status, answer = await send(client, body)
                assert status in EXPECTED
                if status != 200:
                    assert answer.keys() == {"error"}
                    assert len(answer["error"]) <= 1024
            status, _ = await send(client, json.dumps(FULL | SPOTLESS).encode(), "pod-2")
            assert status == 200
            assert len(store) >= 1

    asyncio.run(work())


SPOTLESS: Raw = raw_report(process(5, pod="pod-2"), sequence=9, start="other")


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
def test_any_authorization_is_answered(text: str) -> None:
    value = "".join(one for one in text if one.isprintable() and one.isascii())

    async def work() -> None:
        async with serving() as (client, _):
            headers = {"Authorization": value}
            async with client.post(REPORTS_PATH, data=b"{}", headers=headers) as answer:
                assert answer.status == 401

    asyncio.run(work())


async def test_a_body_that_breaks_off_ends_only_its_own_connection() -> None:
    async with serving() as (client, store):
        server = client.server
        reader, writer = await asyncio.open_connection(server.host, server.port)
        head = (
            f"POST {REPORTS_PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token('pod-1')}\r\n"
        )
        writer.write(f"{head}Content-Length: 500\r\n\r\n{{".encode())
        await writer.drain()
        writer.close()
        await reader.read()
        assert (await send(client, json.dumps(FULL).encode()))[0] == 200
        assert len(store) == 1


async def test_a_token_is_looked_at_once_a_minute() -> None:
    reviewer, clock = Reviewer(), Clock()
    async with serving(reviewer, clock) as (client, _):
        for sequence in range(3):
            await send(client, json.dumps(FULL | {"sequence": sequence}).encode())
        assert reviewer.asked == 1
        clock.now += 61
        await send(client, json.dumps(FULL | {"sequence": 4}).encode())
        assert reviewer.asked == 2


async def test_senders_at_the_same_time_share_one_question() -> None:
    reviewer = Reviewer()
    async with serving(reviewer) as (client, _):
        body = json.dumps(FULL).encode()
        await asyncio.gather(*(send(client, body) for _ in range(10)))
    assert reviewer.asked == 1


async def test_an_api_server_that_does_not_answer_makes_senders_come_again() -> None:
    reviewer = Reviewer()
    reviewer.fails = True
    async with serving(reviewer) as (client, _):
        headers = {"Authorization": f"Bearer {token('pod-1')}"}
        async with client.post(REPORTS_PATH, data=b"{}", headers=headers) as answer:
            assert answer.status == 503
            assert answer.headers["Retry-After"] == "2"
        reviewer.fails = False
        assert (await send(client, json.dumps(FULL).encode()))[0] == 200


async def test_an_address_with_bad_tokens_is_not_heard_for_a_while() -> None:
    clock = Clock()
    async with serving(clock=clock) as (client, _):
        statuses = []
        for _ in range(25):
            async with client.post(REPORTS_PATH, data=b"{}") as answer:
                statuses.append(answer.status)
        assert statuses == [401] * 20 + [429] * 5
        clock.now += 60
        assert (await send(client, json.dumps(FULL).encode()))[0] == 200


async def test_bad_tokens_of_an_address_do_not_silence_its_good_senders() -> None:
    clock = Clock()
    async with serving(clock=clock) as (client, _):
        assert (await send(client, json.dumps(FULL).encode()))[0] == 200
        # The second time the API server has to be asked again: what it said is a minute old.
        for sequence, pause in ((2, 0), (3, 61)):
            clock.now += pause
            statuses = [(await send(client, b"{}", with_token="bad"))[0] for _ in range(25)]
            assert statuses[-1] == 429
            body = json.dumps(FULL | {"sequence": sequence}).encode()
            assert (await send(client, body))[0] == 200


async def test_a_large_body_without_a_length_is_cut_off() -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(300):
            yield b" " * 2**10

    async with serving() as (client, _):
        headers = {"Authorization": f"Bearer {token('pod-1')}"}
        try:
            async with client.post(REPORTS_PATH, data=endless(), headers=headers) as answer:
                assert answer.status == 413
        except aiohttp.ClientConnectionError:
            # The connection may be closed while the rest is still being sent.
            assert (await send(client, json.dumps(FULL).encode()))[0] == 200

"""The TLS server, called as the API server calls it."""

import asyncio
import io
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import kopf
import pytest

from gpumem_operator import names
from gpumem_operator.admission.verdict import Verdict
from gpumem_operator.webhook.certificate import ServingCertificate
from gpumem_operator.webhook.exchange import Exchange
from gpumem_operator.webhook.handlers import register
from gpumem_operator.webhook.server import MAX_BODY_BYTES, AdmissionServer
from webhook.builders import cpu_pod, gpu_pod, key_pair, review

Judge = Callable[[Exchange], Verdict]
MUTATE = f"/{names.MUTATE_POD}"


class Reviewer:
    """Says what it was told to say; while `gate` is clear it keeps callers waiting."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = asyncio.Event()
        self.given_up = asyncio.Event()

    async def pod(self, exchange: Exchange) -> Verdict:
        self.asked.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        return self._judge(exchange)

    ephemeral_containers = resource_claims = room = pod


class Served:
    """A running server and one client of it."""

    def __init__(self, server: AdmissionServer, reviewer: Reviewer, task: Any) -> None:
        self.reviewer = reviewer
        self.server = server
        self.task = task
        self.session = aiohttp.ClientSession()
        self._insecure = ssl._create_unverified_context()

    async def post(self, path: str, body: bytes, *, method: str = "POST") -> tuple[int, str]:
        url = f"https://127.0.0.1:{self.server.listening_port}{path}"
        data = io.BytesIO(body)
        async with self.session.request(method, url, data=data, ssl=self._insecure) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def serve(judge: Judge, *, drain_seconds: float = 0.0) -> AsyncIterator[Served]:
    certificate = ServingCertificate()
    chain, key, _ = key_pair()
    assert certificate.offer(chain, key, origin="test")
    reviewer = Reviewer(judge)
    rows = register(kopf.OperatorRegistry(), reviewer)  # type: ignore[arg-type]
    server = AdmissionServer(
        "127.0.0.1", 0, certificate=certificate, rows=rows, drain_seconds=drain_seconds
    )
    listening = asyncio.Event()

    async def run() -> None:
        async for _ in server(None):  # type: ignore[arg-type]
            listening.set()

    task = asyncio.create_task(run())
    await listening.wait()
    served = Served(server, reviewer, task)
    try:
        yield served
    finally:
        await served.session.close()
        task.cancel()
        await asyncio.wait([task])


def let_in(_: Exchange) -> Verdict:
    return Verdict()


def fail(_: Exchange) -> Verdict:
    raise RuntimeError("a secret detail")


async def test_a_path_that_is_not_registered_is_refused() -> None:
    async with serve(let_in) as served:
        status, text = await served.post("/mutate-pods", review(gpu_pod()))
    answer = json.loads(text)["response"]
    assert (status, answer["allowed"], answer["uid"]) == (200, False, "review-1")
    assert answer["status"]["code"] == 404
    assert "chart and image are of different versions" in answer["status"]["message"]


@pytest.mark.parametrize(
    ("path", "operation", "subresource"),
    [
        (names.MUTATE_POD, "CREATE", ""),
        (names.MUTATE_EPHEMERAL, "UPDATE", "ephemeralcontainers"),
        (names.CHECK_CLAIMS, "CREATE", ""),
        (names.RESERVE_ROOM, "CREATE", ""),
    ],
)
async def test_every_path_answers_its_own_operation_and_no_other(
    path: str, operation: str, subresource: str
) -> None:
    async with serve(let_in) as served:
        own = review(cpu_pod(), operation=operation, subResource=subresource)
        other = review(cpu_pod(), operation="UPDATE", subResource="status")
        _, right = await served.post(f"/{path}", own)
        _, wrong = await served.post(f"/{path}", other)
    assert json.loads(right)["response"]["allowed"] is True
    assert json.loads(wrong)["response"]["allowed"] is False


async def test_a_fault_of_ours_refuses_the_pod_and_tells_no_trace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serve(fail) as served:
        status, text = await served.post(MUTATE, review(gpu_pod()))
    answer = json.loads(text)["response"]
    assert (status, answer["allowed"], answer["status"]["code"]) == (200, False, 500)
    assert "tell the platform team" in answer["status"]["message"]
    assert "secret detail" not in text
    assert "a secret detail" in caplog.text


async def test_a_refusal_is_one_line_in_the_log_and_an_admission_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="gpumem_operator.webhook.server")

    def judge(exchange: Exchange) -> Verdict:
        return Verdict(refusal="too much") if "bad" in exchange.title else Verdict()

    async with serve(judge) as served:
        caplog.clear()
        await served.post(MUTATE, review(gpu_pod("good")))
        assert caplog.messages == []
        await served.post(MUTATE, review(gpu_pod("bad")))
        assert caplog.messages == ["Refused pod team-a/bad at /mutate-pod: too much"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(b"{", 400, id="malformed"),
        pytest.param(b" " * (MAX_BODY_BYTES + 1), 413, id="too large"),
    ],
)
async def test_a_bad_body_gets_a_plain_error(body: bytes, status: int) -> None:
    async with serve(let_in) as served:
        assert (await served.post(MUTATE, body))[0] == status
        assert (await served.post(MUTATE, review(gpu_pod())))[0] == 200


async def test_a_large_pod_is_read_whole() -> None:
    pod = gpu_pod()
    pod["metadata"]["annotations"] = {"filler": "x" * (MAX_BODY_BYTES - 10_000)}
    async with serve(let_in) as served:
        status, text = await served.post(MUTATE, review(pod))
    assert (status, json.loads(text)["response"]["allowed"]) == (200, True)


async def test_other_methods_are_told_what_is_expected() -> None:
    async with serve(let_in) as served:
        status, text = await served.post(MUTATE, b"", method="GET")
    assert (status, "POST an AdmissionReview" in text) == (405, True)


async def test_a_pod_that_is_under_review_at_the_end_gets_its_answer() -> None:
    async with serve(let_in) as served:
        served.reviewer.gate.clear()
        answer = asyncio.create_task(served.post(MUTATE, review(gpu_pod())))
        await served.reviewer.asked.wait()
        served.task.cancel()
        await asyncio.sleep(0)
        assert served.server.stopping
        served.reviewer.gate.set()
        assert json.loads((await answer)[1])["response"]["allowed"] is True


async def test_while_it_drains_it_answers_and_asks_for_other_connections() -> None:
    async with serve(let_in, drain_seconds=60.0) as served:
        served.task.cancel()
        await asyncio.sleep(0)
        url = f"https://127.0.0.1:{served.server.listening_port}{MUTATE}"
        body = review(gpu_pod())
        async with served.session.post(url, data=body, ssl=served._insecure) as answer:
            assert answer.headers["Connection"] == "close"
            assert (await answer.json())["response"]["allowed"] is True
        served.task.cancel()


async def test_a_caller_that_waits_no_longer_is_worked_for_no_longer() -> None:
    """The room that its pod would get is given back by whoever is cancelled (see `desk.py`)."""
    async with serve(let_in) as served:
        served.reviewer.gate.clear()
        call = asyncio.create_task(served.post(f"/{names.RESERVE_ROOM}", review(gpu_pod())))
        await served.reviewer.asked.wait()
        call.cancel()
        await served.reviewer.given_up.wait()

"""A process that was stopped for longer than its lease, and wakes up while another one leads."""

from __future__ import annotations

import http.client
import json
import os
import signal
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from gpumem_operator import names
from gpumem_operator.kube.api import Object
from intake.endpoint import READER, Reviewer, send, serving, token
from intake.senders import Cast, listens
from patience import PATIENCE_SECONDS
from report_builders import GIB, process, raw_report

LAPSED = "leader-1 does not hold the lease ns/x any more; it was not renewed"
ASKED = {names.READER_HEADER: token("", user=READER)}
REPORT = json.dumps(raw_report(process())).encode()


class Stopping(Reviewer):
    """The process is stopped while it waits for the API server, and its lease runs out."""

    lapsed: str | None = None

    async def create(self, path: str, body: Object, *, seconds: float = 0) -> Object:
        self.lapsed = LAPSED
        return await super().create(path, body, seconds=seconds)


@pytest.mark.parametrize("path", ["/v1/usage", "/v1/tenants"])
async def test_what_it_remembers_is_told_to_nobody(path: str) -> None:
    lapsed: list[str] = []
    async with serving(lapsed=lambda: next(iter(lapsed), None)) as (client, _):
        assert (await client.get(path, headers=ASKED)).status == 200
        lapsed.append(LAPSED)
        answer = await client.get(path, headers=ASKED)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert (await answer.json())["error"] == f"{LAPSED}: ask again, another process leads"


async def test_a_report_is_not_taken_in_and_its_token_not_looked_at() -> None:
    reviewer = Reviewer()
    async with serving(reviewer, lapsed=lambda: LAPSED) as (client, store):
        status, _ = await send(client, REPORT)
    assert (status, len(store), reviewer.asked) == (503, 0, 0)


async def test_a_process_that_is_stopped_in_the_middle_of_an_answer_takes_it_back() -> None:
    reviewer = Stopping()
    async with serving(reviewer, lapsed=lambda: reviewer.lapsed) as (client, _):
        assert (await client.get("/v1/usage", headers=ASKED)).status == 503


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def status_of(connection: http.client.HTTPConnection) -> int:
    """Of the answer that is waited for; 0 where the process ended without one."""
    try:
        return connection.getresponse().status
    except OSError:
        return 0


@pytest.mark.cluster
def test_requests_that_waited_for_it_are_refused_when_it_wakes(cast: Cast) -> None:
    uid, account = cast.pod("train"), f"{cast.operator.release}-reader"
    reports = {"Authorization": f"Bearer {cast.token('train')}"}
    report = json.dumps(raw_report(process(GIB, pod=uid)))
    reader = cast.token(None, account=account, namespace=cast.operator.namespace)
    port, pid = cast.leader_port(), cast.leader_pid()
    [standby] = set(cast.operator.report_ports) - {port}
    replica = cast.operator.report_ports.index(port)
    health = urlsplit(cast.operator.health_urls("controller")[replica]).netloc
    context = ssl.create_default_context(cadata=cast.ca)
    asking, sending = (
        http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS, context=context)
        for _ in range(2)
    )
    scraping = http.client.HTTPConnection(health, timeout=PATIENCE_SECONDS)
    requests: tuple[tuple[http.client.HTTPConnection, Any, Any, Any, Any], ...] = (
        (asking, "GET", "/v1/usage", None, {names.READER_HEADER: reader}),
        (sending, "POST", "/v1/reports", report, reports),
        (scraping, "GET", "/metrics", None, {}),
    )
    with closing(asking), closing(sending), closing(scraping):
        for connection, *request in requests:
            connection.request(*request)
            answer = connection.getresponse()
            assert (answer.status, bool(answer.read())) == (200, True)
        with stopped(pid):
            cast.until(lambda: listens(standby))
            for connection, *request in requests:
                connection.request(*request)
        assert {status_of(connection) for connection, *_ in requests} <= {503, 0}
    cast.until(lambda: pid not in cast.operator.controller_pids)

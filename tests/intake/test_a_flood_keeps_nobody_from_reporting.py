"""5,000 connections of one address that say nothing, against the operator as it is installed."""

from __future__ import annotations

import time
import urllib.request
from functools import partial

import pytest

from bench.cost import rss_mib
from flood import silent_connections
from intake.senders import Cast
from patience import PATIENCE_SECONDS
from report_builders import GIB, Raw, process, raw_report

pytestmark = pytest.mark.cluster
FLOOD = 5000


def test_a_sender_is_heard_while_its_own_address_floods_the_leader(cast: Cast) -> None:
    uid = cast.pod("train")
    token = cast.token("train")
    port = cast.leader_port()
    pid = cast.operator.controller_pid_at(port)
    before = rss_mib(pid)
    with silent_connections(port, held=FLOOD):
        for sequence in range(1, 6):
            # One that is displaced while it shakes hands comes again, as a sidecar does.
            told = raw_report(process(sequence * GIB, pod=uid), sequence=sequence)
            assert cast.until(partial(_sent, cast, token, told)) == 200
        during = rss_mib(pid)
    assert during - before < 100, "MiB for all those who say nothing"
    cast.until(
        lambda: cast.series("gpumem_used_bytes", namespace=cast.namespace, pod="train") == [5 * GIB]
    )
    ended = {"listener": "reports", "reason": "Displaced"}
    [displaced] = cast.series("gpumem_connections_ended_total", **ended)
    assert displaced > FLOOD - 1000


def _sent(cast: Cast, token: str, told: Raw) -> int | None:
    try:
        return cast.send(token, told).status
    except OSError:
        return None


def test_probes_are_answered_while_their_port_is_flooded(cast: Cast) -> None:
    url = cast.operator.health_urls("controller")[0]
    with silent_connections(int(url.rpartition(":")[2]), held=1000):
        began = time.monotonic()
        while True:
            assert time.monotonic() - began < PATIENCE_SECONDS
            try:
                with urllib.request.urlopen(f"{url}/healthz", timeout=10) as answer:
                    assert answer.status == 200
                    return
            except OSError:
                continue

"""Reports over real HTTPS: certificates, tokens that rotate, leaders that fall silent or change."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from devcluster.pki import Authority
from gpumem_sidecar.answer import Order
from gpumem_sidecar.channel import Channel
from gpumem_sidecar.outbox import Outbox
from gpumem_sidecar.picture import Picture, Process
from gpumem_sidecar.report import Acknowledgement
from gpumem_sidecar.reporter import Reporter
from gpumem_sidecar.trust import Trust
from leader import Leader, Reply, answer, leading
from patience import PATIENCE_SECONDS, eventually

PICTURES = [Picture(f"580.{n}") for n in range(100)]
"""Each one is news."""


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def leader(tmp_path: Path, authority: Authority) -> Iterator[Leader]:
    with leading(tmp_path, authority) as started:
        yield started


class Sending:
    """A reporter in its thread."""

    def __init__(self, url: str, authority: Authority, token: Path) -> None:
        token.write_text("first\n")
        self.token = token
        self.said: list[str] = []
        self.urgent: list[bool] = []
        self.reporter = Reporter(
            Outbox("Sidecar", "start-1"),
            Channel(url, Trust(authority.pair.certificate.decode()), str(token)),
            self.said.append,
            self.urgent.append,
            carry_out=_carry_out,
            jitter=lambda: 0.0,
        )
        self.thread = threading.Thread(target=self.reporter.run)
        self.thread.start()

    def take(self, picture: Picture) -> None:
        self.reporter.take(picture, time.monotonic())

    def end(self) -> None:
        self.reporter.end()
        self.thread.join(timeout=PATIENCE_SECONDS)
        assert not self.thread.is_alive()


@pytest.fixture
def sending(leader: Leader, authority: Authority, tmp_path: Path) -> Iterator[Sending]:
    started = Sending(leader.url, authority, tmp_path / "token")
    yield started
    started.end()


def _carry_out(orders: Collection[Order]) -> list[Acknowledgement]:
    if any(order.id == "breaks" for order in orders):
        raise ZeroDivisionError
    return [Acknowledgement(order.id, "Unsupported") for order in orders]


def test_reports_come_in_order_over_one_connection(leader: Leader, sending: Sending) -> None:
    for number in range(1, 4):
        sending.take(PICTURES[number])
        leader.wait_for(number)
    assert [said.report["sequence"] for said in leader.said] == [1, 2, 3]
    assert len({said.connection for said in leader.said}) == 1
    assert {said.path for said in leader.said} == {"/v1/reports"}
    assert leader.said[0].headers["Authorization"] == "Bearer first"
    assert leader.said[0].headers["Content-Type"] == "application/json"


def test_the_token_is_read_anew_for_every_report(leader: Leader, sending: Sending) -> None:
    sending.take(PICTURES[1])
    leader.wait_for(1)
    sending.token.write_text("second\n")
    sending.take(PICTURES[2])
    assert leader.wait_for(2)[1].headers["Authorization"] == "Bearer second"


def test_a_token_that_is_refused_is_tried_again_with_the_new_one(
    leader: Leader, sending: Sending
) -> None:
    rotate = Reply(401, {"error": "expired"}, after=lambda: sending.token.write_text("second"))
    leader.replies = [rotate]
    sending.take(PICTURES[1])
    said = leader.wait_for(2)
    assert [one.headers["Authorization"] for one in said] == ["Bearer first", "Bearer second"]
    assert any('401: {"error": "expired"}' in text for text in sending.said)


def test_a_leader_that_asks_for_it_gets_the_whole_picture(leader: Leader, sending: Sending) -> None:
    leader.replies = [answer(next="Full")]
    sending.take(PICTURES[1])
    said = leader.wait_for(2)
    assert [one.report["kind"] for one in said] == ["Full", "Full"]
    assert said[1].report["driverVersion"] == "580.1"


def test_a_slow_leader_holds_up_nobody_who_measures(leader: Leader, sending: Sending) -> None:
    release = threading.Event()
    leader.replies = [Reply(after=release.wait)]
    sending.take(PICTURES[1])
    leader.wait_for(1)
    for number in range(2, 50):
        sending.take(PICTURES[number])
    release.set()
    assert leader.wait_for(2)[1].report["driverVersion"] == "580.49", "the newest, and no other"


def test_a_restarted_leader_gets_the_whole_picture(
    tmp_path: Path, authority: Authority, leader: Leader, sending: Sending
) -> None:
    sending.take(PICTURES[1])
    leader.wait_for(1)
    leader.end()
    sending.take(PICTURES[2])
    eventually(lambda: any("no report arrives" in text for text in sending.said))
    with leading(tmp_path, authority, port=leader.port) as restarted:
        [said, *_] = restarted.wait_for(1)
        assert (said.report["kind"], said.report["driverVersion"]) == ("Full", "580.2")
        eventually(lambda: sending.said[-1] == "reports arrive")


def test_an_idle_connection_that_was_closed_is_no_failure(leader: Leader, sending: Sending) -> None:
    leader.replies = [Reply(headers={"Connection": "close"}), Reply()]
    sending.take(PICTURES[1])
    leader.wait_for(1)
    sending.take(PICTURES[2])
    leader.wait_for(2)
    eventually(lambda: len(sending.said) == 2)
    assert sending.said == ["reports arrive", "reports arrive"]


def test_a_leader_that_is_busy_says_when(leader: Leader, sending: Sending) -> None:
    leader.replies = [Reply(429, {"error": "slower"}, {"Retry-After": "1"}), Reply()]
    sending.take(PICTURES[1])
    first, second = leader.wait_for(2)
    assert second.report["sequence"] == first.report["sequence"] + 1
    assert second.connection != first.connection, "perhaps another leader is found"


def test_a_report_out_of_order_is_followed_by_a_new_beginning(
    leader: Leader, sending: Sending
) -> None:
    leader.replies = [Reply(409, {"error": "not newer"})]
    sending.take(PICTURES[1])
    first, second = leader.wait_for(2)
    assert first.report["senderStart"] == "start-1"
    assert second.report["senderStart"] not in ("", "start-1")
    assert (second.report["sequence"], second.report["kind"]) == (1, "Full")


def test_a_report_that_is_too_large_comes_again_at_once(leader: Leader, sending: Sending) -> None:
    leader.replies = [Reply(413, {"error": "more than 262144 bytes"})]
    sending.take(Picture("580", processes=(Process(7, "GPU-0", bytes=1),)))
    assert leader.wait_for(2)[1].report["processesLeftOut"] == 1


BROKEN = {
    "no JSON": Reply(200, b"<html>"),
    "another version": Reply(200, {"schemaVersion": 2}),
    "no object": Reply(200, []),
    "not UTF-8": Reply(200, b"\xff"),
    "an error of the server": Reply(500, {"error": "a fault"}),
    "no leader": Reply(503, b""),
    "nested too deeply": Reply(200, b"[" * 200_000),
}


@pytest.mark.parametrize("reply", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_answer_is_followed_by_another_try(
    leader: Leader, sending: Sending, reply: Reply
) -> None:
    leader.replies = [reply]
    sending.take(PICTURES[1])
    assert leader.wait_for(2)[1].report["kind"] == "Full"


def test_reports_go_on_after_an_order_that_breaks_whoever_carries_it_out(
    leader: Leader, sending: Sending
) -> None:
    leader.replies = [answer(orders=[{"id": "breaks", "action": "Reclaim"}])]
    sending.take(PICTURES[1])
    assert leader.wait_for(2)[1].report["acknowledgements"] == []
    assert "the answer to a report can not be followed: ZeroDivisionError" in sending.said


def test_what_a_newer_leader_adds_is_no_error(leader: Leader, sending: Sending) -> None:
    limit = {"podUid": "uid", "container": "main", "limitBytes": 5, "more": 1}
    leader.replies = [answer(next="Any", limits=[limit, 7], orders=[{"id": 7}], more={})]
    sending.take(PICTURES[1])
    leader.wait_for(1)
    eventually(lambda: sending.said == ["reports arrive"])


def test_an_open_order_is_urgent_and_acknowledged(leader: Leader, sending: Sending) -> None:
    leader.replies = [answer(orders=[{"id": "a-1", "action": "Kill", "podUid": "uid"}])]
    sending.take(PICTURES[1])
    acknowledged = leader.wait_for(2)[1].report["acknowledgements"]
    assert acknowledged == [{"id": "a-1", "result": "Unsupported", "bytes": None}]
    eventually(lambda: sending.urgent[-1] is False)
    assert True in sending.urgent


def test_a_server_with_another_authority_s_certificate_hears_nothing(
    tmp_path: Path, leader: Leader
) -> None:
    sending = Sending(leader.url, Authority(), tmp_path / "token")
    sending.take(PICTURES[1])
    eventually(lambda: any("CERTIFICATE_VERIFY_FAILED" in text for text in sending.said))
    sending.end()
    assert leader.said == []


def test_without_a_token_nothing_is_sent(leader: Leader, sending: Sending) -> None:
    sending.token.unlink()
    sending.take(PICTURES[1])
    eventually(lambda: any("FileNotFoundError" in text for text in sending.said))
    sending.token.write_text("second")
    assert leader.wait_for(1)[0].headers["Authorization"] == "Bearer second"


@pytest.mark.parametrize("content", ["", "two\nlines", "a b", "\x00", "tökén"])
def test_what_is_no_token_is_not_sent_and_not_printed(
    leader: Leader, sending: Sending, content: str
) -> None:
    sending.token.write_text(content)
    sending.take(PICTURES[1])
    eventually(lambda: sending.said != [])
    assert sending.said[0] == f"no report arrives: OSError: {sending.token} holds no token"
    sending.token.write_text("second")
    assert leader.wait_for(1)[0].headers["Authorization"] == "Bearer second"


@pytest.mark.parametrize("url", ["http://leader/v1/reports", "leader", "https://", "ftp://leader"])
def test_a_token_never_goes_over_anything_but_https(url: str) -> None:
    with pytest.raises(ValueError, match="no https:// address"):
        Channel(url, Trust(), "token")


def test_a_ca_that_is_none_is_told() -> None:
    with pytest.raises(ValueError, match="the CA can not be read"):
        Trust("no PEM")

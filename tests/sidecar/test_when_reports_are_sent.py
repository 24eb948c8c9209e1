"""The rules of the outbox, on a clock of the test's own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpumem_operator.reports.report import Report
from gpumem_sidecar.answer import Answer, Limit, Order
from gpumem_sidecar.outbox import HEARTBEAT_SECONDS, REFUSED_SECONDS, URGENT_SECONDS, Outbox
from gpumem_sidecar.picture import Framework, Gpu, Picture, Process, Shim

GIB = 2**30
POD = "5f0c8f3e-1111-4222-8333-444455556666"


def picture(
    held: int | None = 10 * GIB, *, used: int = 20 * GIB, pids: tuple[int, ...] = (7,)
) -> Picture:
    shim = Shim((Framework("torch", "2.9.0"),))
    processes = tuple(
        Process(
            pid,
            "GPU-0",
            1,
            POD,
            "main",
            bytes=held,
            unknown=None if held else "NotAvailable",
            shim=shim,
        )
        for pid in pids
    )
    return Picture("580", None, (Gpu("GPU-0", 0, "", None, 80 * GIB, GIB, used),), processes)


class Sender:
    """An outbox with a clock."""

    def __init__(self) -> None:
        self.outbox = Outbox("Sidecar", "start-1")
        self.now = 1000.0

    def message(self, new: Picture | None = None, *, after: float = 0.0) -> Any:
        self.now += after
        if new is not None:
            self.outbox.take(new)
        content = self.outbox.next_message(self.now)
        if content is None:
            return None
        Report.model_validate_json(content)
        return json.loads(content)

    def accepted(self, **fields: Any) -> None:
        self.outbox.accepted(Answer(**fields), self.now)


@pytest.fixture
def sender() -> Sender:
    made = Sender()
    assert made.message() is None, "there is nothing to say yet"
    first = made.message(picture())
    assert (first["kind"], first["sequence"], first["senderStart"]) == ("Full", 1, "start-1")
    made.accepted()
    return made


CHANGES = {
    "a process holds more": picture(held=10 * GIB + GIB // 5),
    "a process holds less": picture(held=9 * GIB),
    "the card holds more": picture(used=21 * GIB),
    "another process": picture(pids=(7, 8)),
    "no process": picture(pids=()),
    "another process instead": picture(pids=(8,)),
    "unknown": picture(held=None),
    "a card is lost": picture()._replace(gpus=(Gpu("GPU-0", 0, unknown="DeviceLost"),)),
    "nothing is known": Picture(unknown="Timeout"),
}


@pytest.mark.parametrize("new", CHANGES.values(), ids=CHANGES.keys())
def test_what_changed_is_sent_at_once(sender: Sender, new: Picture) -> None:
    assert sender.message(new, after=0.1)["kind"] == "Full"


def test_a_change_of_one_part_in_a_hundred_can_wait(sender: Sender) -> None:
    little = picture(held=10 * GIB + GIB // 10, used=20 * GIB + GIB // 10)
    assert sender.message(little, after=5) is None
    assert sender.message(after=HEARTBEAT_SECONDS - 5)["kind"] == "Full"


def test_little_changes_that_add_up_are_sent(sender: Sender) -> None:
    steps = [sender.message(picture(held=10 * GIB + n * GIB // 20), after=5) for n in (1, 2, 3)]
    assert [bool(step) for step in steps] == [False, False, True]


def test_what_did_not_change_is_said_every_30_seconds_in_one_line(sender: Sender) -> None:
    for sequence in (2, 3):
        assert sender.message(picture(), after=HEARTBEAT_SECONDS - 0.1) is None
        report = sender.message(picture(), after=0.1)
        assert (report["kind"], report["sequence"]) == ("Unchanged", sequence)
        assert "processes" not in report
        sender.accepted()


def test_the_leader_gets_the_whole_picture_when_it_asks(sender: Sender) -> None:
    assert sender.message(after=HEARTBEAT_SECONDS)["kind"] == "Unchanged"
    sender.accepted(full=True)
    assert sender.message() is None, "not faster than an urgent report"
    assert sender.message(after=URGENT_SECONDS)["kind"] == "Full"


def test_after_a_failure_the_whole_picture_is_sent_with_a_new_number(sender: Sender) -> None:
    lost = sender.message(after=HEARTBEAT_SECONDS)
    sender.outbox.failed(sender.now, 0.5)
    again = sender.message(after=2)
    assert (lost["kind"], again["kind"]) == ("Unchanged", "Full")
    assert again["sequence"] == lost["sequence"] + 1


def test_pauses_grow_to_half_a_minute_and_are_never_equal_for_all(sender: Sender) -> None:
    pauses = []
    for _ in range(12):
        sender.outbox.failed(sender.now, 0.0)
        soonest = (sender.outbox.due_at() or 0) - sender.now
        sender.outbox.failed(sender.now, 1.0)
        latest = (sender.outbox.due_at() or 0) - sender.now
        pauses.append((soonest, latest))
    assert pauses[0] == (0.5, 2.0)
    assert pauses[-1] == (15.0, 30.0)
    assert all(soonest < latest for soonest, latest in pauses)


def test_the_pause_that_is_asked_for_is_kept(sender: Sender) -> None:
    sender.outbox.failed(sender.now, 0.0, pause=120.0)
    assert sender.message(picture(held=1), after=119.9) is None
    assert sender.message(after=0.1) is not None


def test_a_success_ends_the_pauses(sender: Sender) -> None:
    for _ in range(5):
        sender.outbox.failed(sender.now, 1.0)
    assert sender.message(after=60)
    sender.accepted()
    assert sender.message(picture(held=1), after=0.1)
    sender.outbox.failed(sender.now, 0.0)
    assert sender.message(after=0.5)


def test_a_container_over_its_limit_makes_every_picture_news(sender: Sender) -> None:
    assert not sender.outbox.urgent
    assert sender.message(picture(), after=30)
    sender.accepted(limits=(Limit(POD, "main", 8 * GIB),))
    assert sender.outbox.urgent
    assert sender.message(picture(held=10 * GIB + 1), after=0.5)["kind"] == "Full"
    sender.accepted(limits=(Limit(POD, "main", 8 * GIB),))
    assert sender.message() is None, "nothing without a new picture"
    assert sender.message(picture(held=7 * GIB), after=0.5)
    sender.accepted(limits=(Limit(POD, "main", 8 * GIB),))
    assert not sender.outbox.urgent


def test_the_processes_of_a_container_add_up_on_each_card_by_itself(sender: Sender) -> None:
    limits = (Limit(POD, "main", 15 * GIB),)
    sender.message(after=30)
    sender.accepted(limits=limits)
    sender.outbox.take(picture(pids=(7, 8)))
    assert sender.outbox.urgent
    two = picture(pids=(7, 8))
    elsewhere = (two.processes[0], two.processes[1]._replace(gpu="GPU-1"))
    sender.outbox.take(two._replace(processes=elsewhere))
    assert not sender.outbox.urgent


@pytest.mark.parametrize("action", ["Reclaim", "Kill"])
def test_an_order_is_answered_and_nothing_is_done(sender: Sender, action: str) -> None:
    sender.message(after=HEARTBEAT_SECONDS)
    sender.accepted(orders=(Order("a-1", action),))
    assert sender.outbox.urgent
    lost = sender.message(after=URGENT_SECONDS)
    assert lost["acknowledgements"] == [{"id": "a-1", "result": "Unsupported", "bytes": None}]
    sender.outbox.failed(sender.now, 0.0)
    again = sender.message(after=2)
    assert again["acknowledgements"] == lost["acknowledgements"], "until it has arrived"
    sender.accepted()
    assert not sender.outbox.urgent
    assert sender.message(picture(held=1), after=1)["acknowledgements"] == []


def test_a_report_that_is_too_large_is_sent_without_claims_and_then_rarely(
    sender: Sender,
) -> None:
    assert sender.message(after=HEARTBEAT_SECONDS)
    sender.outbox.too_large(sender.now)
    short = sender.message()
    assert [process["shim"] for process in short["processes"]] == [None]
    sender.outbox.too_large(sender.now)
    assert sender.message(picture(), after=REFUSED_SECONDS - 1) is None
    assert sender.message(after=1)


def test_a_sender_that_is_behind_itself_begins_anew(sender: Sender) -> None:
    assert sender.message(after=HEARTBEAT_SECONDS)
    sender.outbox.out_of_order("start-2", sender.now, 0.0)
    report = sender.message(after=1)
    assert (report["senderStart"], report["sequence"], report["kind"]) == ("start-2", 1, "Full")


def test_a_refusal_that_somebody_must_end_is_not_asked_for_again_soon(sender: Sender) -> None:
    sender.outbox.refused(sender.now)
    assert sender.message(picture(held=1), after=REFUSED_SECONDS - 1) is None
    assert sender.message(after=1)

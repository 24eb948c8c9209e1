"""The rules of the outbox, on a clock of the test's own."""

from __future__ import annotations

from typing import Any

import pytest

from gpumem_sidecar.outbox import (
    HEARTBEAT_SECONDS,
    REFUSED_SECONDS,
    RENEWAL_SECONDS,
    URGENT_SECONDS,
)
from gpumem_sidecar.picture import Gpu, Picture
from gpumem_sidecar.settings import MOST_INTERVAL_SECONDS
from sending import GIB, Sender, picture

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


def test_every_report_says_how_old_its_picture_is(sender: Sender) -> None:
    assert sender.message(picture(held=1), after=2)["ageMilliseconds"] == 0
    sender.outbox.failed(sender.now, 0.0)
    again = sender.message(after=1.5)
    assert (again["kind"], again["ageMilliseconds"]) == ("Full", 1500)


def test_a_picture_that_no_other_follows_grows_old_although_reports_go_on(sender: Sender) -> None:
    reports = []
    for _ in range(4):
        reports.append(sender.message(after=HEARTBEAT_SECONDS))
        sender.accepted()
    assert [report["kind"] for report in reports] == ["Unchanged"] * 4
    assert [report["ageMilliseconds"] for report in reports] == [30_000, 60_000, 90_000, 120_000]


@pytest.mark.parametrize("interval", [1, 5, 14, 15, 29, 31, 44, 46, 59, MOST_INTERVAL_SECONDS])
def test_while_pictures_are_taken_the_leaders_never_is_as_old_as_one_that_is_stuck(
    sender: Sender, interval: int
) -> None:
    taken = known = sender.now
    oldest, reports = 0.0, 0
    for _ in range(600):
        new = picture() if sender.now + 1 - taken >= interval else None
        taken = sender.now + 1 if new else taken
        report = sender.message(new, after=1)
        oldest = max(oldest, sender.now - known)
        if report is not None:
            assert report["kind"] == "Unchanged"
            sender.accepted()
            known, reports = sender.now - report["ageMilliseconds"] / 1000, reports + 1
    assert oldest <= max(interval, RENEWAL_SECONDS) + 1
    assert reports <= 600 / HEARTBEAT_SECONDS * 2


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


def test_claims_that_do_not_fit_are_left_out_and_tried_again_half_a_minute_later(
    sender: Sender,
) -> None:
    assert sender.message(picture(held=1))
    sender.outbox.too_large(sender.now)
    assert told(sender.message()) == [(None, True)]
    sender.accepted()
    assert told(sender.message(picture(held=2), after=5)) == [(None, True)], "news do not wait"
    sender.accepted()
    assert sender.message(after=HEARTBEAT_SECONDS - 6) is None
    again = sender.message(after=1)
    assert (again["kind"], told(again)) == ("Full", [("torch", False)]), "nothing had changed"
    sender.accepted()
    assert sender.message(after=HEARTBEAT_SECONDS)["kind"] == "Unchanged"


def test_a_leader_that_never_has_room_gets_what_fits_and_is_asked_every_half_minute(
    sender: Sender,
) -> None:
    sender.message(picture(held=1))
    for _ in range(3):
        sender.outbox.too_large(sender.now)
        assert told(sender.message()) == [(None, True)]
        sender.accepted()
        assert told(sender.message(after=HEARTBEAT_SECONDS)) == [("torch", False)]


def test_where_leaving_out_claims_is_not_enough_the_smallest_processes_go_by_halves(
    sender: Sender,
) -> None:
    whole = picture(pids=tuple(range(1, 12)))
    amounts = [GIB * process.pid for process in whole.processes]
    held = (p._replace(bytes=amount) for p, amount in zip(whole.processes, amounts, strict=True))
    sent = sender.message(whole._replace(processes=tuple(held)))
    found = []
    while sent is not None:
        processes = [process["pid"] for process in sent["processes"]]
        found.append((processes, sent["processesLeftOut"]))
        sender.outbox.too_large(sender.now)
        sent = sender.message()
    assert found == [
        ([11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1], 0),
        ([11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1], 0),
        ([11, 10, 9, 8, 7], 6),
        ([11, 10], 9),
        ([11], 10),
        ([], 11),
    ]
    assert sender.message(after=REFUSED_SECONDS - 1) is None, "there was nothing left to leave out"
    assert told(sender.message(after=1))[0] == ("torch", False)


def told(report: Any) -> list[tuple[str | None, bool]]:
    """Of each process its framework, and whether that was left out."""
    claims = [process.get("shim") for process in report["processes"]]
    names = [claim["frameworks"][0]["name"] if claim else None for claim in claims]
    return list(zip(names, [p.get("shimLeftOut", False) for p in report["processes"]], strict=True))


def test_a_sender_that_is_behind_itself_begins_anew(sender: Sender) -> None:
    assert sender.message(after=HEARTBEAT_SECONDS)
    sender.outbox.out_of_order("start-2", sender.now, 0.0)
    report = sender.message(after=1)
    assert (report["senderStart"], report["sequence"], report["kind"]) == ("start-2", 1, "Full")


def test_a_refusal_that_somebody_must_end_is_not_asked_for_again_soon(sender: Sender) -> None:
    sender.outbox.refused(sender.now)
    assert sender.message(picture(held=1), after=REFUSED_SECONDS - 1) is None
    assert sender.message(after=1)

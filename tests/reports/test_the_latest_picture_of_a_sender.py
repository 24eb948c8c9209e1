"""Which reports are taken in, and what is known of a sender afterwards."""

import pytest

from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.store import OutOfSequence, Store, TooManySenders
from report_builders import GIB, process, report

POD = Sender("Sidecar", "pod-1")
OTHER = Sender("Sidecar", "pod-2")


def used(store: Store, sender: Sender = POD) -> int | None:
    return store.pictures()[sender].processes[0].amount.bytes


def test_a_newer_report_replaces_the_picture() -> None:
    store = Store()
    assert store.take(POD, report(process(1), sequence=1), 0.0)
    assert store.take(POD, report(process(2), sequence=5), 1.0)
    assert used(store) == 2


@pytest.mark.parametrize("sequence", [4, 5], ids=["late", "twice"])
def test_what_comes_late_or_twice_changes_nothing(sequence: int) -> None:
    store = Store()
    store.take(POD, report(process(1), sequence=5), 0.0)
    with pytest.raises(OutOfSequence, match="5"):
        store.take(POD, report(process(2), sequence=sequence), 1.0)
    assert used(store) == 1
    assert store.pictures()[POD].heard == 0.0


def test_a_new_start_begins_anew_and_the_old_one_is_over() -> None:
    store = Store()
    store.take(POD, report(process(1), sequence=50, start="first"), 0.0)
    store.take(POD, report(process(2), sequence=1, start="second"), 1.0)
    assert used(store) == 2
    with pytest.raises(OutOfSequence, match="first"):
        store.take(POD, report(process(3), sequence=51, start="first"), 2.0)
    assert used(store) == 2


def test_a_start_is_over_however_many_have_followed_it_within_a_minute() -> None:
    store = Store()
    for number in range(250):
        store.take(POD, report(process(number), start=f"start {number}"), number / 5)
    with pytest.raises(OutOfSequence, match="start 0"):
        store.take(POD, report(process(1), sequence=2, start="start 0"), 60.0)
    assert used(store) == 249


def test_unchanged_keeps_the_picture_fresh() -> None:
    store = Store()
    store.take(POD, report(process(1), sequence=1), 0.0)
    assert store.take(POD, report(kind="Unchanged", gpus=[], sequence=2), 30.0)
    assert used(store) == 1
    assert store.pictures()[POD].heard == 30.0


def test_unchanged_after_a_report_that_never_came_asks_for_the_whole_picture() -> None:
    store = Store()
    store.take(POD, report(process(1), sequence=1), 0.0)
    assert not store.take(POD, report(kind="Unchanged", gpus=[], sequence=3), 30.0)
    assert store.pictures()[POD].heard == 0.0


def test_a_leader_that_knows_nothing_has_no_picture_of_an_unchanged_one() -> None:
    store = Store()
    assert not store.take(POD, report(kind="Unchanged", gpus=[], sequence=7), 0.0)
    assert store.pictures() == {}
    assert store.take(POD, report(process(1), sequence=8), 1.0)


def test_a_new_start_that_says_unchanged_does_not_inherit_the_picture() -> None:
    store = Store()
    store.take(POD, report(process(1), sequence=1, start="first"), 0.0)
    assert not store.take(POD, report(kind="Unchanged", sequence=2, start="second"), 1.0)
    assert store.pictures() == {}


def test_the_number_of_senders_is_bounded() -> None:
    store = Store(most_senders=1)
    store.take(POD, report(sequence=1), 0.0)
    with pytest.raises(TooManySenders, match="1 senders"):
        store.take(OTHER, report(sequence=1), 0.0)
    store.take(POD, report(sequence=2), 0.0)


def test_senders_that_are_gone_are_forgotten_once_they_are_silent() -> None:
    store = Store()
    store.take(POD, report(sequence=1), 0.0)
    store.take(OTHER, report(sequence=1), 0.0)
    store.forget(lambda sender: sender == POD, 60.0)
    assert len(store) == 2
    store.forget(lambda sender: sender == POD, 91.0)
    assert list(store.pictures()) == [OTHER]
    store.forget(lambda _: False, 601.0)
    assert len(store) == 0


@pytest.mark.parametrize("first_known", [True, False])
def test_of_two_readings_of_one_process_the_better_one_counts(first_known: bool) -> None:
    known, hidden = process(GIB), process("NotAvailable")
    shim = process(3 * GIB, source="Shim")
    both = (known, hidden, shim) if first_known else (shim, hidden, known)
    store = Store()
    store.take(POD, report(*both), 0.0)
    (reading,) = store.pictures()[POD].processes
    assert (reading.amount.bytes, reading.shim) == (GIB, False)

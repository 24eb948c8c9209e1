"""A sender that goes on to report what it saw long ago: its word is as old as its last look."""

from __future__ import annotations

from typing import Any

import pytest

from gpumem_operator.reports.attribution import attribute
from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.report import Report
from gpumem_operator.reports.store import Store
from gpumem_operator.reports.uses import Usage
from gpumem_sidecar.answer import Answer
from gpumem_sidecar.outbox import Outbox
from gpumem_sidecar.picture import Gpu, Picture, Process
from report_builders import GIB, GPU, NODE, gpu, measured, process, raw_report, report

POD = measured()
SIDECAR, AGENT = Sender("Sidecar", POD.uid), Sender("NodeAgent", NODE)


def usage(store: Store, now: float) -> Usage:
    return attribute([POD], store.pictures(), now)


def held(store: Store, now: float) -> int | str | None:
    total = usage(store, now).pods[POD.uid].total
    return total.bytes if total.known else total.unknown


@pytest.mark.parametrize("sender", [SIDECAR, AGENT], ids=["sidecar", "agent"])
def test_a_number_of_more_than_90_seconds_is_unknown_however_often_it_is_repeated(
    sender: Sender,
) -> None:
    store, fields = Store(), {"agent": sender is AGENT}
    store.take(sender, report(process(GIB), sequence=1, **fields), 0.0)
    for sequence, now in enumerate((30, 60, 90), start=2):
        same = report(kind="Unchanged", sequence=sequence, age_milliseconds=now * 1000, **fields)
        assert store.take(sender, same, now)
    assert held(store, 90.0) == GIB
    assert held(store, 90.1) == "SamplerStuck"
    fresh = report(kind="Unchanged", sequence=5, age_milliseconds=2000, **fields)
    store.take(sender, fresh, 100.0)
    assert held(store, 188.0) == GIB


def test_a_whole_picture_counts_from_when_it_was_taken() -> None:
    store = Store()
    store.take(SIDECAR, report(process(GIB), age_milliseconds=80_000), 1000.0)
    assert held(store, 1010.0) == GIB
    assert held(store, 1010.1) == "SamplerStuck"
    assert held(store, 1090.1) == "Silent", "and when it says nothing any more, that is told"


def test_a_picture_that_is_too_old_already_is_taken_in_and_not_believed() -> None:
    store = Store()
    assert store.take(SIDECAR, report(process(GIB), age_milliseconds=90_001), 0.0)
    assert held(store, 0.0) == "SamplerStuck"


def test_a_sender_that_tells_no_age_is_believed_to_have_looked_half_a_minute_ago() -> None:
    """A sidecar of before that field lives as long as its pod does."""
    older = raw_report(process(GIB))
    del older["ageMilliseconds"]
    store = Store()
    assert store.take(SIDECAR, Report.model_validate(older), 100.0)
    same = older | {"kind": "Unchanged", "sequence": 2}
    assert store.take(SIDECAR, Report.model_validate(same), 130.0)
    assert held(store, 190.0) == GIB
    assert held(store, 190.1) == "SamplerStuck"


def test_where_the_agents_look_is_too_old_the_sidecars_word_counts_and_the_card_is_unknown() -> (
    None
):
    store = Store()
    whole: Any = [gpu(used=2 * GIB)]
    old = report(process(2 * GIB), agent=True, gpus=whole, age_milliseconds=91_000)
    store.take(AGENT, old, 0.0)
    store.take(SIDECAR, report(process(GIB)), 0.0)
    assert held(store, 0.0) == GIB
    [card] = usage(store, 0.0).cards
    assert (card.parts, card.unknown) == (None, "SamplerStuck")


def test_a_sampler_that_hangs_is_found_out_from_the_sidecars_own_reports() -> None:
    """Both ends, on clocks that have nothing in common."""
    outbox, store = Outbox("Sidecar", "start"), Store()
    card = Gpu(GPU, 0, "", None, 80 * GIB, GIB, GIB)
    outbox.take(
        Picture("580", None, (card,), (Process(7, GPU, 1, POD.uid, "main", bytes=GIB),)), 0.0
    )
    found = []
    for second in range(200):
        message = outbox.next_message(float(second))
        if message is not None:
            store.take(SIDECAR, Report.model_validate_json(message), 7e6 + second)
            outbox.accepted(Answer(), float(second))
        found.append(held(store, 7e6 + second))
    assert found == [GIB] * 91 + ["SamplerStuck"] * 109

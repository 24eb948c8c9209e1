"""What a report had no room for is not zero, and not a workload without a shim."""

from __future__ import annotations

from typing import Any

import pytest

from gpumem_operator.reports.attribution import attribute
from gpumem_operator.reports.measured import MeasuredPod
from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.report import Report
from gpumem_operator.reports.snapshot import PodView, view_of
from gpumem_operator.reports.store import Store
from gpumem_sidecar.picture import Cap, Framework, Gpu, Picture, Process, Shim
from gpumem_sidecar.report import Header, Room, encode, full
from report_builders import GIB, GPU, NODE, container, gpu, measured, process, report

POD = measured(ids={"1": "main"})
AGENT, SIDECAR = Sender("NodeAgent", NODE), Sender("Sidecar", POD.uid)


def view(sender: Sender, said: Report, pod: MeasuredPod = POD) -> PodView:
    store = Store()
    store.take(sender, said, 0.0)
    found = attribute([pod], store.pictures(), 0.0)
    return view_of(found.pods[pod.uid], declared_bytes=None, charges={})


@pytest.mark.parametrize("sender", [SIDECAR, AGENT], ids=["sidecar", "agent"])
def test_processes_that_are_left_out_may_be_of_any_container(sender: Sender) -> None:
    pod = measured("pod-1", container("main", gpus=2), container("other"))
    said = report(process(GIB), agent=sender is AGENT, gpus=[gpu(used=9 * GIB)], left_out=3)
    found = view(sender, said, pod)
    amounts = {row.container: (row.amount.bytes, row.amount.unknown) for row in found.use.rows}
    assert amounts == dict.fromkeys(("main", "other"), (None, "ReportTooLarge"))
    assert str(found.enforcers["other"]) == "Unknown: ReportTooLarge"


def test_what_was_left_out_makes_no_overuse_undone() -> None:
    found = view(SIDECAR, report(process(9 * GIB), left_out=1))
    assert str(found.enforcer) == "None: OverLimit"


def test_a_card_is_unknown_where_processes_were_left_out() -> None:
    store = Store()
    store.take(AGENT, report(process(GIB), agent=True, gpus=[gpu(used=2 * GIB)], left_out=1), 0.0)
    [card] = attribute([POD], store.pictures(), 0.0).cards
    assert (card.parts, card.unknown) == (None, "ReportTooLarge")


CLAIM = Shim((Framework("torch", "2.9.0", (Cap(GPU, 6 * GIB),)),), 8 * GIB, GIB, 1)
PROCESS = Process(5, GPU, 3, POD.uid, None, "containerd://1", bytes=GIB, shim=CLAIM)
PICTURE = Picture("580", None, (Gpu(GPU, 0, "", None, 80 * GIB, 0, 2 * GIB),), (PROCESS,))


@pytest.mark.parametrize(
    ("room", "enforcer"),
    [
        (Room(), "Framework"),
        (Room(claims=False), "Unknown: ReportTooLarge"),
        (Room(claims=False, processes=0), "Unknown: ReportTooLarge"),
    ],
)
def test_a_claim_that_was_left_out_is_not_a_process_without_a_shim(
    room: Room, enforcer: str
) -> None:
    message: Any = encode(full(Header("Sidecar", "start", 1, 0), PICTURE, room=room))
    found = view(SIDECAR, Report.model_validate_json(message))
    assert str(found.enforcer) == enforcer
    assert found.used_bytes == (GIB if room.processes else None)

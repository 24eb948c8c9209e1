"""A sidecar's outbox and the endpoint, together, with more to say than one report may hold."""

from __future__ import annotations

import pytest

from gpumem_operator.reports.pictures import Picture as Seen
from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.store import Store
from gpumem_sidecar.answer import parse
from gpumem_sidecar.outbox import HEARTBEAT_SECONDS, Outbox
from gpumem_sidecar.picture import Cap, Framework, Gpu, Picture, Process, Shim
from intake.endpoint import Clock, send, serving
from report_builders import GIB, GPU

CLAIM = Shim((Framework("torch", "2.9.0", (Cap(GPU, 6 * GIB),)),), 8 * GIB, GIB, 1)


def picture(processes: int) -> Picture:
    made = (
        Process(pid + 1, GPU, 3, "pod-1", "main", bytes=GIB + pid, shim=CLAIM)
        for pid in range(processes)
    )
    return Picture("580", None, (Gpu(GPU, 0, "", None, 2**50, 0, 2**49),), tuple(made))


async def heartbeats(outbox: Outbox, clock: Clock, number: int) -> tuple[Store, list[int]]:
    """What is stored, and the answers, after so many half minutes with a sample in each second."""
    statuses = []
    async with serving(clock=clock) as (client, store):
        for _ in range(round(number * HEARTBEAT_SECONDS)):
            clock.now += 1
            while (message := outbox.next_message(clock.now)) is not None:
                status, _ = await send(client, message)
                statuses.append(status)
                if status == 413:
                    outbox.too_large(clock.now)
                else:
                    outbox.accepted(parse(b'{"schemaVersion": 1}'), clock.now)
    return store, statuses


def stored(store: Store) -> Seen:
    return store.pictures()[Sender("Sidecar", "pod-1")]


@pytest.mark.parametrize(
    ("processes", "refusals", "unknown", "without_claims"),
    [
        (200, 0, None, False),
        (600, 0, None, False),
        (1000, 0, None, True),
        (1600, 0, None, True),
        (2000, 2, "ReportTooLarge", True),
    ],
)
async def test_what_fits_arrives_at_once_and_the_rest_is_marked(
    processes: int, refusals: int, unknown: str | None, *, without_claims: bool
) -> None:
    clock, outbox = Clock(), Outbox("Sidecar", "start")
    outbox.take(picture(processes), clock.now)
    store, statuses = await heartbeats(outbox, clock, 4)
    assert statuses == [*[413] * refusals, 200] * 4
    seen = stored(store)
    assert seen.unknown == unknown
    assert {process.claim_left_out for process in seen.processes} == {without_claims}


async def test_claims_are_there_as_soon_as_there_is_room_for_them() -> None:
    clock, outbox = Clock(), Outbox("Sidecar", "start")
    outbox.take(picture(700), clock.now)
    await heartbeats(outbox, clock, 1)
    outbox.take(picture(1), clock.now)
    store, statuses = await heartbeats(outbox, clock, 2)
    assert set(statuses) == {200}
    [process] = stored(store).processes
    assert (process.claim is None, process.claim_left_out) == (False, False)

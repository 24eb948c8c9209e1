"""total = reserved + attributed + unattributed + free, whatever an agent says."""

import pytest

from gpumem_operator.reports.attribution import attribute
from gpumem_operator.reports.cards import Card, Parts
from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.store import Store
from report_builders import GIB, GPU, NODE, Raw, gpu, measured, process, report


def card(*processes: Raw, gpus: list[Raw] | None = None, now: float = 1.0) -> Card:
    store = Store()
    full = report(*processes, gpus=gpus, agent=True)
    store.take(Sender("NodeAgent", NODE), full, 0.0)
    (found,) = attribute([measured()], store.pictures(), now).cards
    return found


def test_what_no_pod_owns_is_unattributed() -> None:
    stranger = process(2 * GIB, pid=2, pod=None)
    found = card(process(3 * GIB), stranger, gpus=[gpu(used=6 * GIB)])
    assert found.parts == Parts(80 * GIB, GIB, 3 * GIB, 3 * GIB, 73 * GIB)


def test_processes_that_hold_more_than_the_card_uses_were_read_a_moment_later() -> None:
    found = card(process(3 * GIB), gpus=[gpu(used=2 * GIB)])
    assert found.parts == Parts(80 * GIB, GIB, 3 * GIB, 0, 76 * GIB)


def test_what_can_not_be_is_cut_to_what_the_card_has() -> None:
    found = card(process(60 * GIB, pid=1), process(60 * GIB, pid=2), gpus=[gpu(used=300 * GIB)])
    assert found.parts == Parts(80 * GIB, GIB, 79 * GIB, 0, 0)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        pytest.param(gpu(unknown="DeviceLost"), "DeviceLost", id="lost"),
        pytest.param(gpu(used=None), "NotSupported", id="an amount is missing"),
        pytest.param(gpu(total=0), "NotSupported", id="more is reserved than there is"),
    ],
)
def test_a_card_that_can_not_be_read_has_no_parts(broken: Raw, reason: str) -> None:
    found = card(gpus=[broken])
    assert (found.parts, found.unknown) == (None, reason)


def test_a_silent_agent_leaves_a_card_without_parts() -> None:
    found = card(now=91.0)
    assert (found.parts, found.unknown) == (None, "Silent")


def test_what_is_on_mig_instances_is_on_their_card() -> None:
    slice_ = gpu("MIG-1", total=10 * GIB, parent=GPU)
    found = card(process(2 * GIB, gpu="MIG-1"), gpus=[gpu(used=2 * GIB), slice_])
    assert found.uuid == GPU
    assert found.parts == Parts(80 * GIB, GIB, 2 * GIB, 0, 77 * GIB)

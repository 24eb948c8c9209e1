"""What pods are said to hold, for every kind of sender and everything that one of them can miss."""

from typing import Any

import pytest

from gpumem_operator.reports.measured import MeasuredPod
from gpumem_operator.reports.pictures import Amount
from report_builders import (
    GIB,
    GPU,
    MIB,
    OTHER_GPU,
    container,
    gpu,
    measured,
    process,
    report,
)
from reports.views import agent, rows, seen, use

# One sender ----------------------------------------------------------------------------------


def test_processes_of_a_container_on_one_gpu_are_added_up() -> None:
    found = use(pod_1=report(process(GIB, pid=1), process(2 * GIB, pid=2)))
    assert rows(found) == [("main", GPU, 3 * GIB)]
    assert found.source == "Sidecar"


def test_a_pod_without_a_process_holds_nothing_where_its_sender_would_have_seen_one() -> None:
    assert rows(use(pod_1=report())) == [("main", "", 0)]
    assert rows(use(agent=agent())) == [("main", "", 0)]


def test_no_process_is_not_nothing_used_where_processes_are_not_shared() -> None:
    assert rows(use(measured(shares=False), pod_1=report())) == [("main", "", "ProcessesNotShared")]


def test_one_unknown_process_makes_the_sum_unknown() -> None:
    found = use(pod_1=report(process(GIB, pid=1), process("NotAvailable", pid=2)))
    assert rows(found) == [("main", GPU, "NotAvailable")]
    assert found.total.bytes is None


@pytest.mark.parametrize("reason", ["NoNVMLInSidecar", "HostPids", "ProcessesNotShared"])
def test_a_picture_that_is_not_whole_says_why(reason: str) -> None:
    assert rows(use(pod_1=report(unknown=reason, gpus=[]))) == [("main", "", reason)]
    assert use(agent=agent(unknown=reason)).total.unknown == reason


@pytest.mark.parametrize("gpus", [1, 2])
def test_without_nvml_what_shims_measured_is_the_least_that_the_pod_holds(gpus: int) -> None:
    """A process without a shim is seen by nobody, on whatever GPU the shims tell of."""
    pod = measured("pod-1", container("main", gpus=gpus), container("second"))
    shims = (process(GIB, pid=1, source="Shim"), process(GIB, pid=2, source="Shim"))
    found = use(pod, pod_1=report(*shims, unknown="NoNVMLInSidecar", gpus=[]))
    assert rows(found) == [("main", GPU, "NoNVMLInSidecar"), ("second", "", "NoNVMLInSidecar")]
    assert found.total == Amount(None, "NoNVMLInSidecar", at_least=2 * GIB)
    assert found.of("second").at_least == 0
    assert found.source == "Shim"


def test_process_ids_of_the_node_say_nothing_about_the_pod() -> None:
    stranger = process("HostPids", pod=None, container=None)
    assert use(pod_1=report(stranger)).total.unknown == "HostPids"


def test_a_card_that_can_not_be_read_may_be_the_pods() -> None:
    lost = gpu(OTHER_GPU, unknown="DeviceLost")
    assert use(pod_1=report(gpus=[gpu(), lost])).total.unknown == "DeviceLost"
    assert use(agent=agent(gpus=[gpu(), lost])).total.unknown == "DeviceLost"
    # Its one GPU is seen: the other is not its.
    assert use(pod_1=report(process(GIB), gpus=[gpu(), lost])).total.bytes == GIB
    assert use(agent=agent(process(GIB), gpus=[gpu(), lost])).total.bytes == GIB
    given = {("pod-1", "main"): [GPU]}
    assert use(agent=agent(gpus=[gpu(), lost], given=given)).total.bytes == 0
    given = {("pod-1", "main"): [OTHER_GPU]}
    assert use(agent=agent(gpus=[gpu(), lost], given=given)).total.unknown == "DeviceLost"


SLICE, OTHER_SLICE = "MIG-1", "MIG-2"
UNREADABLE_CARD = gpu(unknown="NVMLError")
"""A sidecar is not root, and may read no card that is divided."""


@pytest.mark.parametrize(
    ("instances", "held"),
    [
        pytest.param([gpu(SLICE, parent=GPU)], 0, id="the slice's processes are listed: none"),
        pytest.param(
            [gpu(SLICE, parent=GPU, used=20 * MIB) | {"unknown": "NVMLError"}],
            0,
            id="they can not be listed, and next to nothing is used of it",
        ),
        pytest.param(
            [gpu(SLICE, parent=GPU, used=2 * GIB) | {"unknown": "NVMLError"}],
            "NVMLError",
            id="they can not be listed, and something is used of it",
        ),
        pytest.param(
            [gpu(SLICE, parent=GPU), gpu(f"{GPU}/1", parent=GPU, unknown="Timeout")],
            "Timeout",
            id="another slice does not even tell its UUID",
        ),
        pytest.param([], "NVMLError", id="nobody knows its slices"),
    ],
)
def test_an_idle_pod_on_a_slice_holds_what_the_slices_tell(
    instances: list[Any], held: int | str
) -> None:
    gpus = [UNREADABLE_CARD, *instances]
    for found in (use(pod_1=report(gpus=gpus)), use(agent=agent(gpus=gpus))):
        assert rows(found) == [("main", "", held)]


def test_a_card_without_amounts_has_processes_all_the_same() -> None:
    mute = [gpu(unknown="NotSupported")]
    given = {("pod-1", "main"): [GPU]}
    assert use(agent=agent(process(GIB), gpus=mute, given=given)).total.bytes == GIB
    assert use(agent=agent(process(GIB), gpus=mute)).total.bytes == GIB
    assert use(pod_1=report(process(GIB), gpus=mute)).total.bytes == GIB


def test_a_container_is_named_by_the_pods_status_and_not_by_a_label_that_a_sender_chose() -> None:
    pod = measured(ids={"1": "main"})
    for container_id in ("containerd://1", "1"):
        by_id = process(GIB, container=None, container_id=container_id)
        assert rows(use(pod, agent=agent(by_id))) == [("main", GPU, GIB)]
    invented = process(GIB, container="no-such-container")
    found = use(pod, pod_1=report(invented))
    assert rows(found) == [("", GPU, GIB), ("main", GPU, "NotAttributed")]
    assert found.total.bytes == GIB


def test_the_same_container_holds_something_on_each_of_its_gpus() -> None:
    pod = measured("pod-1", container(gpus=2))
    processes = (process(GIB), process(2 * GIB, gpu=OTHER_GPU))
    found = use(pod, pod_1=report(*processes, gpus=[gpu(), gpu(OTHER_GPU)]))
    assert rows(found) == [("main", GPU, GIB), ("main", OTHER_GPU, 2 * GIB)]
    assert found.of("main").bytes == 3 * GIB


# Several senders ------------------------------------------------------------------------------


def test_the_agent_is_believed_before_the_sidecar() -> None:
    found = use(agent=agent(process(2 * GIB)), pod_1=report(process(GIB)))
    assert (found.total.bytes, found.source) == (2 * GIB, "NodeAgent")
    # Also where it saw nothing: the sidecar's word is the tenant's.
    assert use(agent=agent(), pod_1=report(process(GIB))).total.bytes == 0


def test_a_sidecar_that_knows_is_believed_before_an_agent_that_does_not() -> None:
    found = use(agent=agent(process("NotAvailable")), pod_1=report(process(GIB)))
    assert (found.total.bytes, found.source) == (GIB, "Sidecar")
    found = use(agent=agent(process("NotAvailable")), pod_1=report(unknown="HostPids"))
    assert found.total.unknown == "NotAvailable"


def test_an_agent_speaks_for_its_own_node_only() -> None:
    elsewhere = measured(node="gpu-2")
    found = seen(elsewhere, agent=agent(process(GIB)))
    assert found.pods["pod-1"].total.unknown == "NoReport"
    (card,) = found.cards
    assert card.parts is not None
    assert card.parts.attributed == 0


def test_a_sidecar_speaks_for_its_own_pod_only() -> None:
    both = (measured("pod-1"), measured("pod-2"))
    found = seen(*both, pod_1=report(process(GIB, pod="pod-2"), process(GIB, pid=2, pod=None)))
    assert found.pods["pod-1"].total.bytes == 0
    assert found.pods["pod-2"].total.unknown == "NoReport"
    assert found.cards == ()


@pytest.mark.parametrize("amount", ["NotAvailable", 0], ids=["unknown", "known"])
def test_what_a_sidecar_says_of_another_pod_hides_nothing_of_its_own(amount: int | str) -> None:
    said = report(process(amount, pod="pod-2"), process("NotAvailable"))
    assert rows(use(pod_1=said)) == [("main", GPU, "NotAvailable")]


def test_of_a_process_without_an_amount_it_counts_whose_it_is() -> None:
    said = report(process("NotAvailable", pod=None), process("NotAvailable"))
    assert rows(use(pod_1=said)) == [("main", GPU, "NotAvailable")]


# Nobody -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param(measured(), "NoReport", id="a sidecar that has not reported"),
        pytest.param(measured(sidecar=False), "NotMeasured", id="no sidecar and no agent"),
    ],
)
def test_without_a_report_the_reason_is_known(pod: MeasuredPod, reason: str) -> None:
    assert rows(use(pod)) == [("main", "", reason)]


@pytest.mark.parametrize("sidecar", [True, False])
def test_before_a_container_has_started_nothing_is_held(sidecar: bool) -> None:
    waiting = measured(started=False, sidecar=sidecar)
    assert rows(use(waiting)) == [("main", "", 0)]
    # Neither a card that can not be read nor an old picture makes it less known.
    assert use(waiting, agent=agent(), now=91.0).total.bytes == 0
    # A sender may be ahead of the pod's status.
    assert use(waiting, agent=agent(process(GIB))).total.bytes == GIB
    assert use(waiting, agent=agent(process("NotAvailable"))).total.unknown == "NotAvailable"


def test_a_pod_that_is_left_to_an_agent_says_so_where_none_has_reported() -> None:
    bare = measured(sidecar=False)
    assert use(bare, by_agent=["pod-1"]).total.unknown == "NoAgentOnNode"
    assert use(bare, by_agent=["pod-2"]).total.unknown == "NotMeasured"
    assert use(bare, by_agent=["pod-1"], agent=agent(process(GIB))).total.bytes == GIB
    assert use(bare, by_agent=["pod-1"], agent=agent(), now=91.0).total.unknown == "Silent"


@pytest.mark.parametrize("name", ["agent", "pod_1"])
def test_after_90_seconds_of_silence_a_number_is_unknown(name: str) -> None:
    full: dict[str, Any] = {name: report(process(GIB), agent=name == "agent")}
    assert use(**full, now=90.0).total.bytes == GIB
    assert use(**full, now=90.1).total.unknown == "Silent"


def test_numbers_end_with_the_pod() -> None:
    assert seen(pod_1=report(process(GIB))).pods == {}

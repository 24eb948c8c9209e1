"""What pods are said to hold, for every kind of sender and everything that one of them can miss."""

from collections.abc import Collection
from typing import Any

import pytest

from gpumem_operator.reports.attribution import attribute
from gpumem_operator.reports.measured import MeasuredPod
from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.report import Report
from gpumem_operator.reports.store import Store
from gpumem_operator.reports.uses import PodUse, Usage
from report_builders import (
    GIB,
    GPU,
    MIB,
    NODE,
    OTHER_GPU,
    container,
    gpu,
    measured,
    process,
    report,
)

POD = measured()


def seen(
    *pods: MeasuredPod, now: float = 1.0, by_agent: Collection[str] = (), **reports: Report
) -> Usage:
    """What is known after these reports: `agent` is of the node, others of pods `pod_N`."""
    store = Store()
    for name, one in reports.items():
        sender = (
            Sender("NodeAgent", NODE)
            if name == "agent"
            else Sender("Sidecar", name.replace("_", "-"))
        )
        store.take(sender, one, 0.0)
    return attribute(pods, store.pictures(), now, by_agent=by_agent)


def use(pod: MeasuredPod = POD, **reports: Any) -> PodUse:
    return seen(pod, **reports).pods[pod.uid]


def rows(found: PodUse) -> list[tuple[str, str, int | str | None]]:
    return [
        (row.container, row.gpu, row.amount.bytes if row.amount.known else row.amount.unknown)
        for row in found.rows
    ]


def agent(*processes: Any, **fields: Any) -> Report:
    return report(*processes, agent=True, **fields)


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


def test_without_nvml_what_the_shim_measured_counts_and_the_rest_stays_unknown() -> None:
    pod = measured("pod-1", container("main"), container("second"))
    shim = process(GIB, source="Shim")
    found = use(pod, pod_1=report(shim, unknown="NoNVMLInSidecar", gpus=[]))
    assert rows(found) == [("main", GPU, GIB), ("second", "", "NoNVMLInSidecar")]
    assert use(pod_1=report(shim, unknown="NoNVMLInSidecar", gpus=[])).source == "Shim"


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
    for sender in ({"pod_1": report}, {"agent": agent}):
        ((name, made),) = sender.items()
        found = use(**{name: made(gpus=[UNREADABLE_CARD, *instances])})
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
    assert rows(found) == [("", GPU, GIB), ("main", "", 0)]
    assert found.total.bytes == GIB


def test_the_same_container_holds_something_on_each_of_its_gpus() -> None:
    pod = measured("pod-1", container(gpus=2))
    processes = (process(GIB), process(2 * GIB, gpu=OTHER_GPU))
    found = use(pod, pod_1=report(*processes, gpus=[gpu(), gpu(OTHER_GPU)]))
    assert rows(found) == [("main", GPU, GIB), ("main", OTHER_GPU, 2 * GIB)]
    assert found.of("main").bytes == 3 * GIB


# A card alone --------------------------------------------------------------------------------

ALONE = {("pod-1", "main"): [GPU]}


def test_what_is_used_of_a_card_that_one_container_has_alone_is_its() -> None:
    found = use(agent=agent(process(GIB), gpus=[gpu(used=5 * GIB)], given=ALONE))
    assert rows(found) == [("main", GPU, 5 * GIB)]


def test_that_answers_also_where_the_driver_gives_no_amount() -> None:
    hidden = process("NotAvailable")
    assert use(agent=agent(hidden, gpus=[gpu(used=5 * GIB)], given=ALONE)).total.bytes == 5 * GIB


def test_a_card_alone_without_a_process_holds_nothing_though_it_shows_a_few_mib_as_used() -> None:
    assert rows(use(agent=agent(gpus=[gpu(used=8 * MIB)], given=ALONE))) == [("main", GPU, 0)]


def test_what_is_used_of_a_card_alone_is_its_also_where_its_processes_can_not_be_seen() -> None:
    assert use(agent=agent(gpus=[gpu(used=5 * GIB)], given=ALONE)).total.bytes == 5 * GIB


def test_a_container_with_gpus_that_could_not_be_named_may_be_on_any_card() -> None:
    lost = [gpu(used=5 * GIB), gpu(OTHER_GPU, unknown="DeviceLost")]
    found = use(measured("pod-1", container(gpus=2)), agent=agent(
        process(GIB), gpus=lost, given=ALONE, unnamed=1
    ))  # fmt: skip
    assert rows(found) == [("main", "", "DeviceLost"), ("main", GPU, GIB)]


def test_a_gpu_that_was_given_and_that_nobody_lists_is_unknown() -> None:
    found = use(agent=agent(gpus=[gpu(OTHER_GPU)], given=ALONE))
    assert rows(found) == [("main", GPU, "DeviceLost")]


def test_while_one_container_has_gpus_that_nobody_could_name_no_card_is_anybodys_alone() -> None:
    both = {("pod-1", "main"): [GPU], ("pod-2", "main"): []}
    found = use(agent=agent(process(GIB), gpus=[gpu(used=5 * GIB)], given=both, unnamed=1))
    assert found.total.bytes == GIB


def test_an_assignment_of_a_pod_of_that_name_in_another_namespace_is_another_pods() -> None:
    elsewhere = measured(namespace="other")
    found = use(elsewhere, agent=agent(process(GIB), gpus=[gpu(used=5 * GIB)], given=ALONE))
    assert found.total.bytes == GIB


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"given": ALONE | {("pod-9", "x"): [GPU]}}, id="it was given to another too"),
        pytest.param(
            {"more": [process(1, pid=7, pod="pod-2")]}, id="another pod's process is there"
        ),
        pytest.param({"more": [process(1, pid=7, pod=None)]}, id="a process of no pod is there"),
    ],
)
def test_a_card_that_is_shared_is_divided_by_processes(other: dict[str, Any]) -> None:
    more = other.get("more", [])
    given = other.get("given", ALONE)
    found = use(agent=agent(process(GIB), *more, gpus=[gpu(used=5 * GIB)], given=given))
    assert found.total.bytes == GIB


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

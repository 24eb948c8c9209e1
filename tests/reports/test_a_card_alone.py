"""What is used of a card is one container's where that one alone has the card, and else not."""

from __future__ import annotations

from typing import Any

import pytest

from report_builders import GIB, GPU, MIB, OTHER_GPU, container, gpu, measured, process
from reports.views import POD, agent, rows, seen, use

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


def test_a_card_of_which_the_reserve_is_not_told_is_divided_by_processes() -> None:
    """Drivers before 510.39.01: what is used may contain the reserve, also of an idle card."""
    old = [gpu(used=615 * MIB, reserved=None)]
    assert use(agent=agent(gpus=old, given=ALONE)).total.bytes == 0
    assert use(agent=agent(process(GIB), gpus=old, given=ALONE)).total.bytes == GIB


def test_no_less_than_its_processes_hold_where_the_card_was_read_a_moment_before() -> None:
    early = [gpu(used=GIB)]
    assert use(agent=agent(process(4 * GIB), gpus=early, given=ALONE)).total.bytes == 4 * GIB


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
        pytest.param(
            {"more": [process("NotAvailable", pid=7, pod=None)]},
            id="a process of no pod is there, with an amount that nobody knows",
        ),
        pytest.param(
            {"more": [process(1, pid=7, pod="pod-gone")]},
            id="a process of a pod that has ended is there still",
        ),
        pytest.param({"pods": [measured("pod-2")], "given": ALONE | {("pod-2", "main"): [GPU]}},
            id="two pods were given a replica each, and one of them is idle"),
        pytest.param({"given": ALONE | {("pod-1", "second"): [GPU]}},
            id="another container of the pod was given it too"),
        pytest.param({"given": {}}, id="the kubelet did not say who was given what"),
    ],
)  # fmt: skip
def test_a_card_that_is_shared_is_divided_by_processes(other: dict[str, Any]) -> None:
    more = other.get("more", [])
    given = other.get("given", ALONE)
    sent = agent(process(GIB), *more, gpus=[gpu(used=5 * GIB)], given=given)
    found = seen(POD, *other.get("pods", []), agent=sent).pods
    assert found["pod-1"].total.bytes == GIB
    assert all(found[uid].total.bytes == 0 for uid in found if uid != "pod-1")


@pytest.mark.parametrize(
    ("more", "at_first", "later"),
    [
        pytest.param([], "NoReport", 5 * GIB, id="the processes of the earlier one are gone"),
        pytest.param([process(2 * GIB, pod="pod-0")], "NoReport", 0, id="they are there still"),
        pytest.param([process(GIB)], 5 * GIB, 5 * GIB, id="its own process is listed"),
    ],
)
def test_what_a_predecessor_of_the_same_name_was_given_is_not_the_new_pod_s(
    more: list[Any], at_first: int | str, later: int
) -> None:
    """The kubelet names pods without their UID, and the picture is older than the pod."""
    sent = agent(*more, gpus=[gpu(used=5 * GIB)], given=ALONE)
    assert rows(use(agent=sent, since={"pod-1": 0.5})) == [("main", GPU, at_first)]
    assert rows(use(agent=sent, since={"pod-1": 0.0})) == [("main", GPU, later)]

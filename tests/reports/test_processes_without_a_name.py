"""A process of the pod that is in no container with a name: the sum is known, the owner is not."""

from __future__ import annotations

from typing import Any

import pytest

from gpumem_operator.reports.measured import MeasuredPod
from gpumem_operator.reports.pictures import Amount
from report_builders import GIB, GPU, OTHER_GPU, container, gpu, measured, process, report
from reports.views import agent, rows, use

PAIR = measured("pod-1", container("main"), container("second"), ids={"1": "main", "2": "second"})
STRANGER = process(GIB, pid=9, container=None, container_id="containerd://9")


@pytest.mark.parametrize(
    ("pod", "sent", "shown"),
    [
        pytest.param(
            PAIR,
            [STRANGER],
            [("", GPU, GIB), ("main", GPU, "NotAttributed"), ("second", GPU, "NotAttributed")],
            id="either container may be its owner",
        ),
        pytest.param(
            PAIR,
            [STRANGER, process(2 * GIB, container_id="containerd://1")],
            [("", GPU, GIB), ("main", GPU, 2 * GIB), ("second", GPU, "NotAttributed")],
            id="one has processes by its id, and this has another id",
        ),
        pytest.param(
            PAIR,
            [process(GIB, pid=9, container=None), process(2 * GIB, container_id="containerd://1")],
            [("", GPU, GIB), ("main", GPU, "NotAttributed"), ("second", GPU, "NotAttributed")],
            id="it has no id at all",
        ),
        pytest.param(
            measured(ids={"2": "main"}),
            [STRANGER],
            [("", GPU, GIB), ("main", GPU, "NotAttributed")],
            id="the container was started anew, and its status tells another id",
        ),
    ],
)
def test_a_container_that_may_own_a_process_without_a_name_is_not_said_to_hold_nothing(
    pod: MeasuredPod, sent: list[Any], shown: list[Any]
) -> None:
    total = sum(one["bytes"] for one in sent)
    for found in (use(pod, pod_1=report(*sent)), use(pod, agent=agent(*sent))):
        assert rows(found) == shown
        assert found.total == Amount(total), "whose in the pod it is does not change the sum"
        least = 2 * GIB if len(sent) == 2 else 0
        assert found.of("main").floor == least


def test_a_container_that_was_given_other_cards_is_not_the_owner() -> None:
    given = {("pod-1", "main"): [GPU], ("pod-1", "second"): [OTHER_GPU]}
    sent = agent(STRANGER, gpus=[gpu(used=GIB), gpu(OTHER_GPU)], given=given)
    found = use(PAIR, agent=sent)
    assert rows(found) == [
        ("", GPU, GIB), ("main", GPU, "NotAttributed"), ("second", OTHER_GPU, 0),
    ]  # fmt: skip
    assert found.total.bytes == GIB


def test_of_a_process_that_may_be_of_another_pod_not_even_the_sum_is_known() -> None:
    """A sidecar with hostPID, on a node that is a container itself."""
    anybodys = process("NotAttributed", pid=9, pod=None, container=None)
    found = use(PAIR, pod_1=report(anybodys, process(GIB, container_id="containerd://1")))
    assert rows(found) == [("main", GPU, GIB), ("second", "", "NotAttributed")]
    assert found.total == Amount(None, "NotAttributed", at_least=GIB)

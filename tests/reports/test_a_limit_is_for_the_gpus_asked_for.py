"""A container on GPUs that are not its own: within its limit on each, and over it all the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from gpumem_operator.enforcement.judged import holds_of
from gpumem_operator.reports.enforcement import enforcers_of
from gpumem_operator.reports.enforcer import weakest
from gpumem_operator.reports.uses import PodUse
from report_builders import GIB, GPU, MIB, OTHER_GPU, container, gpu, measured, process, report
from reports.views import agent, use

BOTH = [gpu(), gpu(OTHER_GPU)]
ON_TWO = (process(4 * GIB, pid=1), process(5000 * MIB, pid=2, gpu=OTHER_GPU))


def over(found: PodUse) -> dict[str, int]:
    """Bytes too many by GPU, as enforcement judges them."""
    holds = holds_of(found, age_seconds=1)
    return {hold.gpu: hold.excess_bytes for hold in holds if hold.is_over}


def held_by(found: PodUse) -> tuple[str, str]:
    enforcer = weakest(enforcers_of(found).values())
    return str(enforcer), enforcer.detail


def test_a_gpu_more_than_it_asked_for_is_over_the_limit_whatever_it_holds_there() -> None:
    found = use(pod_1=report(*ON_TWO, gpus=BOTH))
    why, detail = held_by(found)
    assert why == "None: OverLimit"
    assert detail == f"process 1: 4Gi held on {GPU}: on 2 GPUs, asked for 1"
    assert over(found) == {GPU: 4 * GIB}, "it has most on the other one: that may be its own"


def test_who_asked_for_two_may_be_on_two() -> None:
    found = use(measured("pod-1", container(gpus=2)), pod_1=report(*ON_TWO, gpus=BOTH))
    assert over(found) == {}
    assert "asked for" not in held_by(found)[1]


def test_what_the_kubelet_gave_is_its_own_and_nothing_else_is() -> None:
    given = {("pod-1", "main"): [GPU]}
    found = use(agent=agent(*ON_TWO, gpus=BOTH, given=given))
    assert over(found) == {OTHER_GPU: 5000 * MIB}
    told = f"5000Mi held on {OTHER_GPU}: on a GPU that was not given to it, asked for 1"
    assert held_by(found) == ("None: OverLimit", f"process 2: {told}")
    # Also where it is on no more than it asked for.
    found = use(agent=agent(ON_TWO[1], gpus=BOTH, given=given))
    assert over(found) == {OTHER_GPU: 5000 * MIB}


def test_a_whole_card_that_it_has_for_itself_is_no_leave_to_use_another() -> None:
    pod = measured("pod-1", container(limit=None, exclusive=True))
    assert held_by(use(pod, pod_1=report(ON_TWO[0])))[0] == "Hardware"
    assert held_by(use(pod, pod_1=report(*ON_TWO, gpus=BOTH)))[0] == "None: OverLimit"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"unnamed": 1}, id="it has one that the agent could not name"),
        pytest.param({"since": {"pod-1": 0.5}}, id="the kubelet's word is of an earlier pod"),
    ],
)
def test_what_the_kubelet_gave_counts_only_where_it_is_sure(fields: Any) -> None:
    since = fields.pop("since", {})
    given = {("pod-1", "main"): [GPU]}
    found = use(agent=agent(ON_TWO[1], gpus=BOTH, given=given, **fields), since=since)
    assert over(found) == {}


@pytest.mark.parametrize("given", [[GPU], ["MIG-1"]], ids=["the card", "an instance of it"])
def test_a_card_and_its_instance_are_one(given: list[str]) -> None:
    gpus = [gpu(), gpu("MIG-1", parent=GPU), gpu(OTHER_GPU), gpu("MIG-2", parent=OTHER_GPU)]
    told = {("pod-1", "main"): given}
    for place, is_over in ((GPU, False), ("MIG-1", False), (OTHER_GPU, True), ("MIG-2", True)):
        found = use(agent=agent(process(GIB, gpu=place), gpus=gpus, given=told))
        assert bool(over(found)) == is_over, place


def test_an_instance_beside_its_own_is_not_its_own() -> None:
    gpus = [gpu(), gpu("MIG-1", parent=GPU), gpu("MIG-2", parent=GPU)]
    told = {("pod-1", "main"): ["MIG-1"]}
    assert over(use(agent=agent(process(GIB, gpu="MIG-2"), gpus=gpus, given=told)))


def test_what_is_not_known_to_be_anywhere_is_not_astray() -> None:
    """A process in no container that could be named may be any container's."""
    processes = (process(GIB, pid=1), process(GIB, pid=2, gpu=OTHER_GPU, container="invented"))
    assert over(use(pod_1=report(*processes, gpus=BOTH))) == {}


@for_all(st.dictionaries(st.integers(0, 6), st.integers(1, 8 * GIB), min_size=1), st.integers(1, 8))
def test_within_the_limit_on_no_more_gpus_than_asked_for_nobody_is_over(
    held: dict[int, int], asked: int
) -> None:
    pod = measured("pod-1", container(gpus=asked))
    processes = [process(amount, pid=n + 1, gpu=f"GPU-{n}") for n, amount in held.items()]
    found = over(use(pod, pod_1=report(*processes, gpus=[])))
    assert len(found) == max(0, len(held) - asked)
    assert sum(found.values()) == sum(sorted(held.values())[: len(found)])

"""Pods of a tenant that queues get a scheduling gate; nobody else does."""

import pytest

from builders import admitted, container, cpu_container, pod, policy, refused, review, tenant
from gpumem_operator import names
from gpumem_operator.api.pods import MIRROR_ANNOTATION

GATE = {"name": "gpumemory.dev/quota"}
FOREIGN = {"name": "example.com/other"}
GROUP_SIZE = "gpumemory.dev/group-size"


def test_a_gpu_pod_of_a_queueing_tenant_waits() -> None:
    assert admitted(pod(), tenant())["spec"]["schedulingGates"] == [GATE]


def test_gates_of_others_stay() -> None:
    stored = admitted(pod(schedulingGates=[FOREIGN]), tenant())
    assert stored["spec"]["schedulingGates"] == [FOREIGN, GATE]


@pytest.mark.parametrize("exceeded", ["Reject", "Warn"])
def test_tenants_that_do_not_queue_give_no_gate(exceeded: str) -> None:
    assert "schedulingGates" not in admitted(pod(), tenant(exceeded=exceeded))["spec"]


def test_one_tenant_that_queues_is_enough() -> None:
    stored = admitted(pod(), tenant("a", exceeded="Warn"), tenant("b"))
    assert stored["spec"]["schedulingGates"] == [GATE]


def test_a_policy_that_only_observes_lets_nobody_past_the_queue() -> None:
    stored = admitted(pod(), tenant(), policy(mode="Observe"))
    assert stored["spec"]["schedulingGates"] == [GATE]


def test_a_pod_without_gpus_does_not_wait() -> None:
    assert review(pod(cpu_container()), tenant()).operations == ()


def test_a_second_look_changes_nothing() -> None:
    assert review(admitted(pod(), tenant()), tenant()).operations == ()


def test_a_gate_that_no_tenant_wants_goes_at_once() -> None:
    taken_along = pod(schedulingGates=[FOREIGN, GATE])
    stored = admitted(taken_along, tenant(exceeded="Warn"))
    assert stored["spec"]["schedulingGates"] == [FOREIGN]
    stored = admitted(pod(container(), schedulingGates=[GATE]), policy())
    assert stored["spec"]["schedulingGates"] == []


def test_the_picture_of_a_static_pod_runs_already() -> None:
    raw = pod(nodeName="gpu-1", annotations={MIRROR_ANNOTATION: "hash"})
    assert "schedulingGates" not in admitted(raw, tenant())["spec"]


@pytest.mark.parametrize("text", ["0", "-1", "1001", "two", "", "1.5"])
def test_a_size_of_a_group_that_means_nothing_is_refused(text: str) -> None:
    refusal = refused(pod(annotations={GROUP_SIZE: text}), tenant())
    assert f"{text!r} is not a number of pods: give one from 1 to 1000" in refusal


@pytest.mark.parametrize("text", ["1", "8", str(names.MOST_IN_A_GROUP)])
def test_the_size_of_a_group_is_no_typing_error(text: str) -> None:
    raw = pod(annotations={GROUP_SIZE: text})
    raw["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "train", "controller": True}]
    assert review(raw, tenant(limit="1Pi")).warnings == ()


def test_a_group_of_a_pod_without_a_controller_is_warned_of() -> None:
    [warning] = review(pod(annotations={GROUP_SIZE: "2"}), tenant(limit="80Gi")).warnings
    assert "group-size means nothing here: a group is the pods of one controller" in warning
    assert review(pod(annotations={GROUP_SIZE: "1"}), tenant()).warnings == ()

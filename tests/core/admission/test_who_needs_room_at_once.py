"""Pods that may not wait, or can not, are marked: they need room before they are stored."""

import pytest

from builders import admitted, cpu_container, pod, policy, refused, review, tenant
from gpumem_operator.api.pods import MIRROR_ANNOTATION

RESERVE = "gpumemory.dev/reserve"
GATE = {"name": "gpumemory.dev/quota"}
GROUP_SIZE = "gpumemory.dev/group-size"
FORGED = {RESERVE: "false"}


def test_a_pod_of_a_tenant_that_refuses_is_marked_and_has_no_gate() -> None:
    stored = admitted(pod(), tenant(exceeded="Reject"))
    assert stored["metadata"]["labels"][RESERVE] == "true"
    assert "schedulingGates" not in stored["spec"]


@pytest.mark.parametrize("exceeded", ["Queue", "Warn"])
def test_no_other_pod_is_marked(exceeded: str) -> None:
    assert RESERVE not in admitted(pod(), tenant(exceeded=exceeded))["metadata"]["labels"]


def test_of_several_tenants_the_one_that_refuses_decides() -> None:
    stored = admitted(pod(), tenant("a"), tenant("b", exceeded="Reject"))
    assert stored["metadata"]["labels"][RESERVE] == "true"
    assert "schedulingGates" not in stored["spec"]


def test_a_pod_that_names_its_node_can_not_wait_and_asks_at_once() -> None:
    stored = admitted(pod(nodeName="gpu-1"), tenant())
    assert stored["metadata"]["labels"][RESERVE] == "true"
    assert "schedulingGates" not in stored["spec"]


def test_where_nobody_asks_for_room_a_named_node_changes_nothing() -> None:
    stored = admitted(pod(nodeName="gpu-1"), tenant(exceeded="Warn"))
    assert RESERVE not in stored["metadata"]["labels"]


def test_the_picture_of_a_static_pod_runs_already() -> None:
    raw = pod(nodeName="gpu-1", annotations={MIRROR_ANNOTATION: "hash"})
    for exceeded in ("Queue", "Reject"):
        stored = admitted(raw, tenant(exceeded=exceeded))
        assert RESERVE not in stored["metadata"]["labels"]


def test_a_mark_of_the_author_is_replaced_or_goes() -> None:
    refusing = tenant(exceeded="Reject")
    assert admitted(pod(labels=FORGED), refusing)["metadata"]["labels"][RESERVE] == "true"
    for other in (tenant(), tenant(exceeded="Warn"), policy()):
        stored = admitted(pod(labels=FORGED), other)
        assert RESERVE not in stored["metadata"]["labels"]


def test_a_mark_on_a_pod_without_gpus_is_none_of_our_business() -> None:
    raw = pod(cpu_container(), labels=FORGED)
    assert review(raw, tenant(exceeded="Reject")).operations == ()


def test_an_exported_pod_that_is_created_again_comes_out_the_same() -> None:
    for exceeded in ("Reject", "Queue", "Warn"):
        stored = admitted(pod(), tenant(exceeded=exceeded))
        assert review(stored, tenant(exceeded=exceeded)).operations == ()


def test_one_that_comes_from_a_queue_loses_its_gate_and_is_marked() -> None:
    stored = admitted(admitted(pod(), tenant()), tenant(exceeded="Reject"))
    assert stored["spec"]["schedulingGates"] == []
    assert stored["metadata"]["labels"][RESERVE] == "true"


def test_as_an_annotation_the_mark_means_nothing_and_that_is_said() -> None:
    [warning] = review(pod(annotations={RESERVE: "true"}), tenant(exceeded="Reject")).warnings
    assert f"annotation {RESERVE} means nothing" in warning


def test_a_group_is_refused_where_it_could_go_on_in_part() -> None:
    text = refused(pod(annotations={GROUP_SIZE: "4"}), tenant(exceeded="Reject"))
    assert "a group of 4 can not go on whole here" in text
    assert (
        "pods of tenant research (onExceeded: Reject) are let in or refused one at a time" in text
    )
    assert "have the tenant queue" in text


def test_so_is_one_of_pods_that_name_their_node() -> None:
    text = refused(pod(annotations={GROUP_SIZE: "4"}, nodeName="gpu-1"), tenant())
    assert "a pod with spec.nodeName can not wait for the others" in text
    assert "spec.nodeSelector" in text


def test_a_group_of_one_needs_nobody_else() -> None:
    stored = admitted(pod(annotations={GROUP_SIZE: "1"}), tenant(exceeded="Reject"))
    assert stored["metadata"]["labels"][RESERVE] == "true"

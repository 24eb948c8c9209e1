"""A pod that was exported and is created again, under another policy or with less in it."""

from __future__ import annotations

from typing import Any

import pytest

from builders import (
    Raw,
    admitted,
    container,
    containers_of,
    cpu_container,
    env,
    native_sidecar,
    pod,
    policy,
    review,
    tenant,
    variables,
)
from gpumem_operator import names

SIDECAR = policy(monitoring={"mode": "Sidecar"})
AGENT = policy(monitoring={"mode": "NodeAgent"})


class TestSharedProcesses:
    """shareProcessNamespace is set for the sidecar's sake, and for nobody else's."""

    def test_it_is_given_up_where_no_sidecar_wants_it(self) -> None:
        exported = admitted(pod(), SIDECAR)
        assert exported["spec"]["shareProcessNamespace"] is True
        assert "shareProcessNamespace" not in admitted(exported, AGENT)["spec"]
        assert "shareProcessNamespace" not in admitted(exported, tenant())["spec"]

    @pytest.mark.parametrize("own", [True, False])
    def test_an_author_s_own_stays(self, own: bool) -> None:
        exported = admitted(pod(shareProcessNamespace=own), SIDECAR)
        for record in (AGENT, SIDECAR, tenant()):
            assert admitted(exported, record)["spec"]["shareProcessNamespace"] is own

    def test_the_next_policy_that_wants_it_sets_it_again(self) -> None:
        once = admitted(pod(), SIDECAR)
        assert admitted(admitted(once, AGENT), SIDECAR) == once
        assert review(once, SIDECAR).operations == ()

    def test_only_our_own_sidecar_can_say_that_it_is_ours(self) -> None:
        mark = env(GPUMEM_INJECTED=names.SHARED_PROCESSES_MARK)
        pretenders: list[Raw] = [
            pod(container(env=mark), shareProcessNamespace=True),
            pod(init=[native_sidecar("other", gpus=None, env=mark)], shareProcessNamespace=True),
        ]
        for raw in pretenders:
            assert admitted(raw, AGENT)["spec"]["shareProcessNamespace"] is True


ZERO = container(gpus=0, env=env(GPUMEM_LIMIT_SOURCE="Annotation", GPUMEM_LIMIT_BYTES="1", A="b"))


@pytest.mark.parametrize("record", [SIDECAR, policy(mode="Observe"), tenant()])
def test_a_pod_that_asks_for_no_gpu_at_all_keeps_nothing_that_pretends_to_be_ours(
    record: Any,
) -> None:
    marks = {names.MANAGED_LABEL: "true", names.POLICY_LABEL: "x", "app": "a"}
    stored = admitted(pod(ZERO, labels=marks), record)
    assert variables(stored) == {"A": "b"}
    assert stored["metadata"]["labels"] == {"app": "a"}
    assert review(stored, record).operations == ()


def test_nor_does_one_that_asked_for_some_when_it_was_exported() -> None:
    author = pod(container(), cpu_container())
    exported = admitted(author, policy(limits={"default": "8Gi"}))
    without: Raw = {"limits": {"nvidia.com/gpu": "0"}, "requests": {"nvidia.com/gpu": "0"}}
    containers_of(exported)["train"]["resources"] = without
    stored = admitted(exported, policy(limits={"default": "8Gi"}))
    assert set(containers_of(stored)) == {"train", "web"}
    assert containers_of(stored)["train"]["env"] == []
    assert "shareProcessNamespace" not in stored["spec"]
    assert stored["spec"]["volumes"] == []


def test_where_nobody_decides_it_is_left_alone() -> None:
    assert review(pod(ZERO)).operations == ()

"""Under Observe a pod says what mode Active would have done to it: to its author and on itself."""

from typing import Any

from builders import Raw, admitted, container, env, pod, policy, review
from gpumem_operator import names
from gpumem_operator.api.records import PolicyRecord


def summary(raw: Raw, record: PolicyRecord) -> str:
    text: str = admitted(raw, record)["metadata"]["annotations"][names.SUMMARY_ANNOTATION]
    return text


def observing(**spec: Any) -> PolicyRecord:
    return policy(mode="Observe", **spec)


def test_a_default_that_would_limit_it_stands_in_the_summary() -> None:
    text = summary(pod(container(gpu=1)), observing(limits={"default": "8Gi"}))
    assert "(Observe): train 1 GPU, no limit" in text
    assert text.endswith("Active would say: train 8Gi on 1 GPU (Policy)")


def test_a_refusal_stands_in_the_summary_and_in_a_warning() -> None:
    raw = pod(container(gpu=1, memory="40Gi"))
    record = observing(limits={"max": "16Gi"})
    assert "Active would refuse it: " in summary(raw, record)
    warned = " ".join(review(raw, record).warnings)
    assert "would be refused: " in warned
    assert "40Gi over 1 GPU = 40Gi per GPU, more than the largest limit per GPU, 16Gi" in warned


def test_an_allocator_string_on_which_pytorch_aborts_would_be_refused() -> None:
    raw = pod(container(gpu=1, env=env(PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb=128")))
    warned = " ".join(review(raw, observing()).warnings)
    assert "would be refused: spec.containers[train].env: PYTORCH_CUDA_ALLOC_CONF" in warned


def test_a_policy_that_acts_says_nothing_of_the_kind() -> None:
    assert "would" not in summary(pod(container(gpu=1)), policy(limits={"default": "8Gi"}))

"""What a tenant's quota says at admission, before anything else is known."""

from __future__ import annotations

import pytest

from builders import admitted, container, pod, refused, review, tenant
from gpumem_operator import names


class TestQuota:
    """A pod that is more than the whole quota can never run."""

    @pytest.mark.parametrize("exceeded", ["Queue", "Reject"])
    def test_it_is_refused_with_the_arithmetic(self, exceeded: str) -> None:
        raw = pod(container("a", gpus=8, memory="128Gi"), container("b", gpus=2))
        text = refused(raw, tenant(limit="160Gi", exceeded=exceeded))
        assert "tenant research" in text
        assert "counts as 288Gi (a 128Gi over 8 GPUs; b 160Gi over 2 GPUs)" in text
        assert "more than the whole quota of 160Gi" in text
        assert "ask for less, or have the quota raised" in text

    def test_one_that_declares_nothing_is_told_what_it_counts_as_and_to_declare(self) -> None:
        text = refused(pod(container("c")), tenant(limit="20Gi"))
        assert (
            "the pod counts as 80Gi (c 80Gi over 1 GPU), which is more than the whole quota of"
            " 20Gi."
            " Container c declares no GPU memory, so each of its GPUs counts as a whole one:"
            " declare"
            " what it needs (nvidia.com/memory), ask for less, or have the quota raised"
        ) in text

    def test_one_that_declares_too_much_is_not_told_to_declare(self) -> None:
        text = refused(pod(container("c", memory="21Gi")), tenant(limit="20Gi"))
        assert "the pod asks for 21Gi" in text
        assert "declare" not in text

    def test_the_quota_itself_fits(self) -> None:
        admitted(pod(container(gpus=2)), tenant(limit="160Gi"))

    def test_warn_only_warns(self) -> None:
        raw = pod(container(gpus=9))
        record = tenant(exceeded="Warn")
        (text,) = review(raw, record).warnings
        assert "more than the whole quota of 640Gi" in text
        assert "tenant research (onExceeded: Warn) lets it in: the pod counts as 720Gi" in text
        admitted(raw, record)

    def test_the_smallest_of_several_tenants_is_enough_to_refuse(self) -> None:
        raw = pod(container(gpus=2))
        text = refused(raw, tenant("a", exceeded="Warn", limit="1Gi"), tenant("b", limit="80Gi"))
        assert "tenant b" in text

    def test_a_quota_of_zero_lets_nothing_in(self) -> None:
        assert "whole quota of 0" in refused(pod(), tenant(limit="0"))

    def test_zero_gpus_need_nothing(self) -> None:
        assert review(pod(container(gpus=0)), tenant(limit="0")).refusal is None

    def test_containers_that_are_left_out_of_the_sum_are_counted_in_words(self) -> None:
        raw = pod(*(container(f"c{i}") for i in range(9)))
        assert "and 4 more containers" in refused(raw, tenant())


class TestGroup:
    """A group goes on whole or not at all, so one that is more than the quota never does."""

    def test_its_pods_are_told_at_their_creation(self) -> None:
        (text,) = warnings_of("3", "8Gi", limit="20Gi")
        assert text == (
            "gpumemory.dev: tenant research: a group of 3 such pods asks for 24Gi, which is more"
            " than the whole"
            " quota of 20Gi, so none of them would ever run: ask for less, make the group smaller,"
            " or have the quota raised"
        )

    def test_one_that_fits_is_let_in_without_a_word(self) -> None:
        assert warnings_of("3", "8Gi", limit="24Gi") == ()

    def test_where_nobody_waits_there_are_no_groups(self) -> None:
        assert warnings_of("3", "8Gi", limit="20Gi", exceeded="Warn") == ()


def warnings_of(size: str, memory: str, *, limit: str, exceeded: str = "Queue") -> tuple[str, ...]:
    raw = pod(container(memory=memory), annotations={names.GROUP_SIZE_ANNOTATION: size})
    raw["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j", "controller": True}]
    return tuple(review(raw, tenant(limit=limit, exceeded=exceeded)).warnings)

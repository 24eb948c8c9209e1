"""What a tenant's quota says at admission, before anything else is known."""

from __future__ import annotations

import pytest

from builders import admitted, container, pod, refused, review, tenant


class TestQuota:
    """A pod that is more than the whole quota can never run."""

    @pytest.mark.parametrize("exceeded", ["Queue", "Reject"])
    def test_it_is_refused_with_the_arithmetic(self, exceeded: str) -> None:
        raw = pod(container("a", gpus=8, memory="128Gi"), container("b", gpus=2))
        text = refused(raw, tenant(limit="160Gi", exceeded=exceeded))
        assert "tenant research" in text
        assert "asks for 288Gi (a 128Gi over 8 GPUs; b 160Gi over 2 GPUs)" in text
        assert "more than the whole quota of 160Gi" in text
        assert "ask for less, or have the quota raised" in text

    def test_the_quota_itself_fits(self) -> None:
        admitted(pod(container(gpus=2)), tenant(limit="160Gi"))

    def test_warn_only_warns(self) -> None:
        raw = pod(container(gpus=9))
        record = tenant(exceeded="Warn")
        assert "more than the whole quota of 640Gi" in " ".join(review(raw, record).warnings)
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

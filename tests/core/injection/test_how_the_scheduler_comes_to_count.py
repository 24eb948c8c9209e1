"""What is declared by annotation or policy is written as a resource where the chart asks for it."""

from __future__ import annotations

from typing import Any

import pytest

from builders import admitted, container, frozen, gib, pod, policy, review, tenant, values
from gpumem_operator import names


class TestFillResource:
    """With scheduling.fillResource the scheduler counts whoever declared another way."""

    CHART = values(scheduling={"fillResource": "Enabled"})
    DEFAULT = policy(limits={"default": "8Gi"})

    def test_it_is_the_total_and_the_source_at_once(self) -> None:
        stored = admitted(pod(container(gpus=2)), self.DEFAULT, values=self.CHART)
        resources = stored["spec"]["containers"][0]["resources"]
        assert resources["limits"] == {"nvidia.com/gpu": "2", "nvidia.com/memory": "16Gi"}
        assert resources["requests"] == resources["limits"]
        assert frozen(stored) == ("Resource", gib(8))

    @pytest.mark.parametrize("annotation", ["8Gi", "5000000000"])
    def test_the_pod_is_right_after_one_pass(self, annotation: str) -> None:
        raw = pod(container(gpus=3), annotations={names.LIMIT_ANNOTATION: annotation})
        stored = admitted(raw, self.DEFAULT, values=self.CHART)
        assert review(stored, self.DEFAULT, values=self.CHART).operations == ()

    @pytest.mark.parametrize(
        "record", [policy(), policy(mode="Observe", limits={"default": "8Gi"}), tenant()]
    )
    def test_who_has_no_limit_of_an_active_policy_gets_nothing(self, record: Any) -> None:
        stored = admitted(pod(), record, values=self.CHART)
        assert stored["spec"]["containers"][0]["resources"] == container()["resources"]

    def test_it_is_off_unless_the_chart_turns_it_on(self) -> None:
        stored = admitted(pod(), self.DEFAULT)
        assert stored["spec"]["containers"][0]["resources"] == container()["resources"]

"""What is declared by annotation or policy is written as a resource where the chart asks for it."""

from __future__ import annotations

from typing import Any

import pytest

from builders import (
    Raw,
    admitted,
    container,
    env,
    frozen,
    gib,
    pod,
    policy,
    refused,
    review,
    tenant,
    values,
    variables,
)
from gpumem_operator import names


def author_resources(raw: Raw) -> Any:
    return raw["spec"]["containers"][0]["resources"]


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

    def test_it_is_given_up_when_the_pod_is_created_again_without_it(self) -> None:
        author = pod(container(gpus=2))
        exported = admitted(author, self.DEFAULT, values=self.CHART)
        assert admitted(exported, self.DEFAULT) == admitted(author, self.DEFAULT)

    @pytest.mark.parametrize(
        "second",
        [
            pytest.param(policy(limits={"default": "3Gi", "max": "4Gi"}), id="a lower maximum"),
            pytest.param(policy(limits={"default": "40Gi", "min": "20Gi"}), id="a higher minimum"),
            pytest.param(policy(), id="no default"),
            pytest.param(policy(mode="Observe"), id="only observed"),
            pytest.param(tenant(), id="a tenant alone"),
        ],
    )
    def test_another_policy_judges_what_the_author_declared_alone(self, second: Any) -> None:
        author = pod(container(gpus=2))
        exported = admitted(author, self.DEFAULT, values=self.CHART)
        fresh = admitted(author, second, values=self.CHART)
        again = admitted(exported, second, values=self.CHART)
        assert author_resources(again) == author_resources(fresh)
        assert variables(again) == variables(fresh)

    def test_an_annotation_that_was_filled_in_is_judged_as_an_annotation(self) -> None:
        raw = pod(container(gpus=2), annotations={names.LIMIT_ANNOTATION: "8Gi"})
        exported = admitted(raw, self.DEFAULT, values=self.CHART)
        message = refused(exported, policy(limits={"default": "3Gi", "max": "4Gi"}))
        assert f'metadata.annotations["{names.LIMIT_ANNOTATION}"]' in message
        assert "more than the largest limit per GPU, 4Gi" in message

    def test_the_summary_says_what_was_declared_and_that_it_was_filled_in(self) -> None:
        stored = admitted(pod(container(gpu=1)), self.DEFAULT, values=self.CHART)
        summary = stored["metadata"]["annotations"][names.SUMMARY_ANNOTATION]
        assert summary.endswith("on 1 GPU (Policy, filled in)")

    def test_an_author_s_own_is_never_taken_for_ours(self) -> None:
        author = pod(container(memory="8Gi"))
        exported = admitted(author, self.DEFAULT, values=self.CHART)
        again = admitted(exported, policy())
        assert again["spec"]["containers"][0]["resources"] == author_resources(author)
        assert frozen(again) == ("Resource", gib(8))

    def test_whoever_forges_the_mark_loses_the_resource_and_gains_nothing(self) -> None:
        mark = env(GPUMEM_INJECTED=names.MEMORY_RESOURCE)
        forged = pod(container(memory="40Gi", env=mark))
        stored = admitted(forged, policy(limits={"default": "8Gi", "max": "24Gi"}))
        assert stored["spec"]["containers"][0]["resources"] == container()["resources"]
        assert frozen(stored) == ("Policy", gib(8))

    def test_nor_can_it_take_anything_else_away(self) -> None:
        mark = env(GPUMEM_INJECTED="nvidia.com/gpu,cpu")
        stored = admitted(pod(container(limits={"cpu": "1"}, env=mark)), self.DEFAULT)
        assert author_resources(stored) == container(limits={"cpu": "1"})["resources"]

    def test_it_is_off_unless_the_chart_turns_it_on(self) -> None:
        stored = admitted(pod(), self.DEFAULT)
        assert stored["spec"]["containers"][0]["resources"] == container()["resources"]

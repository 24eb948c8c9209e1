"""What a policy in mode Observe does, and what it leaves to the tenant."""

from __future__ import annotations

import pytest

from builders import (
    Raw,
    admitted,
    container,
    cpu_container,
    env,
    frozen,
    pod,
    policy,
    refused,
    review,
    tenant,
)
from gpumem_operator import names


class TestObserve:
    """Labels, GPUMEM_* and the sidecar; refusals become warnings."""

    POLICY = policy(
        mode="Observe",
        limits={"default": "8Gi", "min": "4Gi", "max": "40Gi"},
        frameworks={"pytorch": {"allocatorConfig": {"max_split_size_mb": "128"}}},
        datasetCache={"mountPath": "/mnt/ramdisk", "sizeLimit": "1Gi"},
    )

    def test_that_is_all_there_is(self) -> None:
        entries = env(
            PYTHONPATH="/app",
            CUPY_GPU_MEMORY_LIMIT="0",
            PYTORCH_CUDA_ALLOC_CONF="backend:",
            NVIDIA_GPU_MEMORY_LIMIT="9",
        )
        raw = pod(container(env=entries, memory="8Gi"), cpu_container("web"))
        stored = admitted(raw, self.POLICY)
        spec = stored["spec"]
        assert [one["name"] for one in spec.pop("initContainers")] == [names.SIDECAR_CONTAINER]
        assert {v["name"] for v in spec.pop("volumes")} == {names.RUN_VOLUME, names.TOKEN_VOLUME}
        assert spec.pop("shareProcessNamespace") is True
        spec["containers"][0]["env"] = [
            entry
            for entry in spec["containers"][0]["env"]
            if not entry["name"].startswith(names.ENV_PREFIX)
        ]
        assert spec == raw["spec"]

    def test_who_declares_nothing_gets_no_limit(self) -> None:
        assert frozen(admitted(pod(), self.POLICY)) == ("WholeGPU", None)

    @pytest.mark.parametrize(
        ("raw", "sentence"),
        [
            (pod(container(memory="1Gi")), "less than the least limit per GPU, 4Gi"),
            (pod(container(memory="80Gi")), "more than the largest limit per GPU, 40Gi"),
            (pod(annotations={f"{names.LIMIT_ANNOTATION}.x": "8Gi"}), "no container 'x'"),
            (pod(container(), cpu_container("web", memory="8Gi")), "without a GPU"),
        ],
    )
    def test_what_would_be_refused_is_let_through_with_a_warning(
        self, raw: Raw, sentence: str
    ) -> None:
        warned = " ".join(review(raw, self.POLICY).warnings)
        assert "would be refused" in warned
        assert sentence in warned
        admitted(raw, self.POLICY)

    def test_a_tenant_s_refusal_stands(self) -> None:
        assert "whole quota" in refused(pod(container(gpus=9)), self.POLICY, tenant())

    def test_so_does_that_of_devices_in_a_tenant(self) -> None:
        raw = pod(container(env=env(NVIDIA_VISIBLE_DEVICES="all")))
        assert "did not ask for" in refused(raw, self.POLICY, tenant())

    def test_and_that_of_a_declaration_that_can_not_be_counted(self) -> None:
        raw = pod(annotations={names.LIMIT_ANNOTATION: "lots"})
        assert "is not a quantity" in refused(raw, self.POLICY, tenant())

    def test_bounds_of_the_policy_stay_warnings_in_a_tenant(self) -> None:
        admitted(pod(container(memory="1Gi")), self.POLICY, tenant())

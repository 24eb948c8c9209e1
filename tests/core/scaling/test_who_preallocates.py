"""Pods that take their memory ahead of need, by what is known of them."""

from __future__ import annotations

from typing import Any

import pytest

from builders import container, env, pod
from gpumem_operator.reports.pictures import Amount, ProcessReading
from gpumem_operator.reports.report import Framework, Shim
from gpumem_operator.reports.uses import GpuUse, PodUse
from gpumem_operator.scaling.preallocators import (
    growing_frameworks,
    preallocating_framework,
    preallocating_server,
)
from report_builders import GIB, GPU, measured

JAX_GROWS = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
TENSORFLOW_GROWS = {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}


@pytest.mark.parametrize(
    ("fields", "server"),
    [
        ({"image": "registry.example/vllm-openai:v1"}, "vLLM"),
        ({"command": ["sh", "-c", "exec vllm serve model"]}, "vLLM"),
        ({"args": ["-m", "sglang.launch_server"]}, "SGLang"),
        ({"image": "text-generation-inference:3"}, "Text Generation Inference"),
        ({"image": "ollama/ollama"}, None),
        ({"image": "tritonserver:25"}, None),
        ({}, None),
    ],
)
def test_servers_are_known_by_command_and_image(fields: Any, server: str | None) -> None:
    assert preallocating_server(pod(container(**fields))) == server


def _using(*frameworks: Framework) -> PodUse:
    reading = ProcessReading(
        pid=7,
        gpu=GPU,
        pod_uid="pod-1",
        container="main",
        container_id=None,
        amount=Amount(GIB),
        shim=False,
        claim=Shim(frameworks=list(frameworks)),
    )
    return PodUse(measured(), (GpuUse("main", GPU, Amount(GIB), (reading,)),), "Sidecar")


def _framework(name: str, **fields: Any) -> Framework:
    caps = [{"gpu": GPU, "capBytes": GIB}]
    return Framework.model_validate({"name": name, "caps": caps, **fields})


@pytest.mark.parametrize(
    ("name", "variables", "preallocates"),
    [
        ("jax", {}, True),
        ("jax", {"XLA_PYTHON_CLIENT_PREALLOCATE": "no"}, True),
        ("jax", JAX_GROWS, False),
        ("tensorflow", {}, True),
        ("tensorflow", {"TF_FORCE_GPU_ALLOW_GROWTH": "1"}, True),
        ("tensorflow", TENSORFLOW_GROWS, False),
        ("tensorflow", JAX_GROWS, True),
        ("torch", {}, False),
    ],
)
def test_frameworks_preallocate_unless_they_are_told_to_grow(
    name: str, variables: dict[str, str], preallocates: bool
) -> None:
    growing = growing_frameworks(pod(container(env=env(**variables))))
    found = preallocating_framework(_using(_framework(name)), growing)
    assert found == (name if preallocates else None)


def test_a_framework_that_has_not_started_holds_nothing() -> None:
    idle = _framework("jax", caps=[], notCapped="NotStarted")
    assert preallocating_framework(_using(idle), frozenset()) is None


def test_one_container_that_does_not_grow_is_enough() -> None:
    two = pod(
        container("a", env=env(**JAX_GROWS)),
        container("b", env=env(XLA_PYTHON_CLIENT_PREALLOCATE="true")),
    )
    assert growing_frameworks(two) == frozenset()

"""Inference servers are recognised, and their authors told what to give them."""

from __future__ import annotations

from typing import Any

import pytest

from gpumem_operator.injection.servers import server_of, warnings

GIB = 2**30


@pytest.mark.parametrize(
    ("container", "name", "argument"),
    [
        ({"command": ["vllm", "serve", "m"]}, "vLLM", "--gpu-memory-utilization"),
        ({"command": ["/usr/bin/vllm"], "args": ["serve"]}, "vLLM", "--gpu-memory-utilization"),
        (
            {"command": ["python3", "-m", "vllm.entrypoints.openai.api_server"]},
            "vLLM",
            "--gpu-memory-utilization",
        ),
        ({"image": "r:5000/vllm/vllm-openai:v0.30"}, "vLLM", "--gpu-memory-utilization"),
        ({"command": ["sh", "-c"], "args": ["exec vllm serve m"]}, "vLLM", "utilization"),
        ({"command": ["python", "-m", "sglang.launch_server"]}, "SGLang", "--mem-fraction-static"),
        (
            {"image": "ghcr.io/huggingface/text-generation-inference@sha256:0"},
            "Text Generation Inference",
            "--cuda-memory-fraction",
        ),
        ({"command": ["/app/llama-server"]}, "llama.cpp", "--fit-target"),
        ({"image": "ollama/ollama"}, "Ollama", "OLLAMA_GPU_OVERHEAD"),
        ({"args": ["tritonserver", "--x"]}, "Triton", "--cuda-memory-pool-byte-size"),
    ],
)
def test_a_known_server_is_told_its_argument(
    container: dict[str, Any], name: str, argument: str
) -> None:
    [text] = warnings(container, 7 * GIB)
    assert text.startswith(name)
    assert argument in text


def test_the_fraction_is_within_the_limit() -> None:
    [text] = warnings({"command": ["vllm"]}, 7 * GIB)
    assert "at most 7Gi / memory of the card (0.087 with 80Gi)" in text


@pytest.mark.parametrize(
    "container",
    [{}, {"command": ["python", "train.py"]}, {"args": ["--name=vllm"]}, {"image": "a/novllm"}],
)
def test_another_program_is_not(container: dict[str, Any]) -> None:
    assert server_of(container) is None


def test_nothing_is_said_without_a_limit() -> None:
    assert warnings({"command": ["vllm"]}, None) == ()

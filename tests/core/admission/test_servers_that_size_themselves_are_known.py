"""Inference servers are recognised, and their authors told what to give them."""

from __future__ import annotations

from typing import Any

import pytest

from builders import Raw, around, container, env, mig_container, pod, policy
from gpumem_operator.admission.review import review_pod
from gpumem_operator.api.quantity import MIB
from gpumem_operator.api.values import Values
from gpumem_operator.injection.servers import SERVERS, server_of
from gpumem_operator.injection.servers import warnings as warnings_of
from gpumem_operator.ledger.node_enforcers import NodeSummary

GIB = 2**30
H200, L4 = 143771 * MIB, 23034 * MIB
CARDS = {"NVIDIA-L4": L4, "NVIDIA-H200": H200}


def warnings(raw: dict[str, Any], cap: int | None = 7 * GIB, **cards: int) -> tuple[str, ...]:
    return warnings_of(raw, cap, cards=cards)


@pytest.mark.parametrize(
    ("raw", "name", "argument"),
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
def test_a_known_server_is_told_its_argument(raw: dict[str, Any], name: str, argument: str) -> None:
    [text] = warnings(raw)
    assert text.startswith(name)
    assert argument in text


def test_the_fraction_is_within_the_limit() -> None:
    [text] = warnings({"command": ["vllm"]})
    assert "at most 7Gi / memory of the card (0.087 with 80Gi)" in text


def test_every_card_of_the_cluster_has_its_value_the_largest_first() -> None:
    [text] = warnings({"command": ["vllm"]}, **CARDS)
    assert text.endswith("memory of the card: 0.049 on NVIDIA-H200, 0.311 on NVIDIA-L4")


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ({"image": "ghcr.io/ggml-org/llama.cpp:server-cuda"}, f"{143771 - 7 * 1024} on"),
        ({"command": ["ollama"]}, f"{H200 - 7 * GIB} on"),
        ({"image": "lmsysorg/sglang:v0.5"}, "0.049 on"),
        ({"command": ["text-generation-launcher"]}, "0.049 on"),
        ({"command": ["tritonserver"]}, f"<gpu>:<bytes> of at most {7 * GIB}, and each"),
    ],
)
def test_what_must_be_left_is_counted_in_the_unit_of_the_argument(raw: Raw, value: str) -> None:
    [text] = warnings(raw, **CARDS)
    assert value in text


def test_what_people_see_is_within_what_kubectl_shows() -> None:
    models = {f"NVIDIA-H100-80GB-HBM3-MIG-{n}g.10gb-SHARED": H200 for n in range(9)}
    for one in SERVERS:
        [text] = warnings({"command": [min(one.words)]}, 7 * GIB + 1, **models)
        assert "0.0489 on" not in text
        if one.measure != "Bytes":
            assert "and 6 more models" in text


def test_a_card_that_is_smaller_than_the_limit_may_be_taken_whole() -> None:
    [text] = warnings({"command": ["vllm"]}, 40 * GIB, **CARDS)
    assert text.endswith("0.284 on NVIDIA-H200, 1 on NVIDIA-L4")
    [text] = warnings({"command": ["ollama"]}, 40 * GIB, card=L4)
    assert ": 0 on card" in text


def test_a_tiny_part_is_not_rounded_to_nothing() -> None:
    [text] = warnings({"command": ["vllm"]}, 64 * MIB, **CARDS)
    assert "0.000445 on NVIDIA-H200" in text


@pytest.mark.parametrize(
    "raw",
    [
        {"command": ["vllm", "serve", "m", "--gpu-memory-utilization", "0.049"]},
        {"command": ["vllm"], "args": ["--gpu_memory_utilization=0.04"]},
        {"command": ["vllm"], "args": ["--device-memory-utilization=0.04"]},
        {"args": ["exec vllm serve m --gpu-memory-utilization=0.9 --gpu-memory-utilization 0.01"]},
        {"command": ["ollama"], "env": env(OLLAMA_GPU_OVERHEAD=str(H200))},
        {"command": ["llama-server", "--fit-target", str(143771 - 7 * 1024)]},
        {"image": "a/text-generation-inference", "env": env(CUDA_MEMORY_FRACTION="0.02")},
    ],
)
def test_an_author_who_gave_a_value_that_fits_every_card_is_told_nothing(raw: Raw) -> None:
    assert warnings(raw, **CARDS) == ()
    assert warnings(raw) != (), "of cards that are not known, nothing fits for sure"


@pytest.mark.parametrize("value", ["0.05", "0.9", "nan", "inf", "much", "", "$(SHARE)"])
def test_one_that_does_not_fit_is_told_again(value: str) -> None:
    assert warnings({"command": ["vllm", "--gpu-memory-utilization", value]}, **CARDS) != ()
    assert warnings({"command": ["vllm", f"--gpu-memory-utilization={value}"]}, **CARDS) != ()


def test_an_argument_without_its_value_is_none() -> None:
    assert warnings({"command": ["vllm", "--gpu-memory-utilization"]}, **CARDS) != ()


VLLM = container(memory="8Gi", command=["vllm", "serve", "m"])
LOWERS = {"serverArgs": "Enabled"}


def told(raw: Raw, **injection: str) -> list[str]:
    nodes = NodeSummary(cards=CARDS)
    verdict = review_pod(raw, around(policy(injection=injection)), Values(), nodes=nodes)
    assert verdict.refusal is None
    return [text for text in verdict.warnings if "sizes itself" in text]


def test_admission_knows_the_cluster_s_cards() -> None:
    [text] = told(pod(VLLM))
    assert text.endswith("0.049 on NVIDIA-H200, 0.311 on NVIDIA-L4")
    assert len(text) <= 256


def test_a_server_that_the_shim_lowers_is_no_matter_for_its_author() -> None:
    assert told(pod(VLLM), **LOWERS) == []
    sglang = container(memory="8Gi", command=["python", "-m", "sglang.launch_server"])
    assert len(told(pod(sglang), **LOWERS)) == 1, "the shim lowers vLLM alone"


def test_it_is_where_the_shim_is_left_out() -> None:
    assert len(told(pod(VLLM), **LOWERS, shim="Disabled")) == 1


def test_a_container_on_a_slice_sees_the_slice() -> None:
    raw = mig_container(command=["vllm"], limits={"nvidia.com/memory": "8Gi"})
    [text] = told(pod(raw))
    assert text.endswith(": 0.7 on its slice")


@pytest.mark.parametrize(
    "raw",
    [{}, {"command": ["python", "train.py"]}, {"args": ["--name=vllm"]}, {"image": "a/novllm"}],
)
def test_another_program_is_not(raw: dict[str, Any]) -> None:
    assert server_of(raw) is None


def test_nothing_is_said_without_a_limit() -> None:
    assert warnings({"command": ["vllm"]}, None) == ()

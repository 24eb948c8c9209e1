"""Inference servers that take a share of the card by themselves: how each is told to take less.

They fill what they find free, or a fraction of the card's memory, which is not known at admission.
So the author is told the argument and how its value follows from the limit. Pure: what a container
runs is its command, arguments and image.
Sources: the servers' own documentation of these arguments. None of them was run for this table.
"""

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpumem_operator.api.quantity import MIB, format_bytes

_EXAMPLE_BYTES: Final = 80 * 1024 * MIB


@dataclass(frozen=True)
class Server:
    """One server; `words` are programs, modules and image names that it is known by."""

    name: str
    words: frozenset[str]
    advice: str
    """With {cap}, {bytes}, {fraction} and {card} to be filled in."""


_FRACTION = "{argument} of at most {{cap}} / memory of the card ({{fraction}} with {{card}})"
SERVERS: Final = (
    Server(
        "vLLM",
        frozenset({"vllm", "vllm-openai", "vllm.entrypoints.openai.api_server"}),
        _FRACTION.format(argument="--gpu-memory-utilization"),
    ),
    Server(
        "SGLang",
        frozenset({"sglang", "sglang.launch_server"}),
        _FRACTION.format(argument="--mem-fraction-static"),
    ),
    Server(
        "Text Generation Inference",
        frozenset({"text-generation-launcher", "text-generation-inference"}),
        _FRACTION.format(argument="--cuda-memory-fraction"),
    ),
    Server(
        "llama.cpp",
        frozenset({"llama-server", "llama-cli"}),
        "--fit-target of at least the card's free memory less {cap}, in MiB: it has no absolute"
        " cap",
    ),
    Server(
        "Ollama",
        frozenset({"ollama"}),
        "OLLAMA_GPU_OVERHEAD of at least the card's memory less {cap}, in bytes: it plans by it,"
        " and is not bound by it",
    ),
    Server(
        "Triton",
        frozenset({"tritonserver"}),
        "--cuda-memory-pool-byte-size=<gpu>:<bytes> within {bytes} bytes, and a limit of each"
        " backend's own: the pool is not what backends take",
    ),
)


def warnings(container: Mapping[str, Any], cap_bytes: int | None) -> tuple[str, ...]:
    """What to tell about the server that a container runs; nothing without a cap, or a server."""
    server = server_of(container)
    if server is None or cap_bytes is None:
        return ()
    advice = server.advice.format(
        cap=format_bytes(cap_bytes),
        bytes=cap_bytes,
        # Rounded down: a fraction that is rounded up is above the limit.
        fraction=f"{int(1000 * min(1.0, cap_bytes / _EXAMPLE_BYTES)) / 1000:g}",
        card=format_bytes(_EXAMPLE_BYTES),
    )
    return (f"{server.name} sizes itself by the card and not by the limit: give it {advice}",)


def server_of(container: Mapping[str, Any]) -> Server | None:
    """The first known one that the container's command, arguments or image names."""
    words = set(_words(container))
    return next((server for server in SERVERS if server.words & words), None)


def _words(container: Mapping[str, Any]) -> Iterable[str]:
    for text in (*(container.get("command") or ()), *(container.get("args") or ())):
        # A shell gets its whole line as one argument.
        for word in str(text)[:4096].split():
            yield posixpath.basename(word)
    image = str(container.get("image") or "").partition("@")[0].rpartition("/")[2]
    yield image.partition(":")[0]

"""Inference servers that take a share of the card by themselves: how each is told to take less.

They fill what they find free, or a fraction of the card's memory. Which card a pod gets is not
known at admission, but which ones the cluster has is: so the author is told the argument, and its
value on each of them. Pure: what a container runs is its command, arguments and image.
Sources: vLLM's engine arguments were read from 0.33.0; the servers' own documentation of the other
arguments, none of which was run for this table.
"""

import math
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal

from gpumem_operator.api.count import count
from gpumem_operator.api.quantity import MIB, format_bytes, show_bytes

Cards = Mapping[str, int]
"""Bytes of one GPU by its model; empty where no card is known."""

_EXAMPLE_BYTES: Final = 80 * 1024 * MIB
_SHOWN_MODELS: Final = 3
"""kubectl shows 256 characters of a warning."""
_LONGEST_TEXT: Final = 4096


@dataclass(frozen=True)
class Server:
    """One server; `words` are programs, modules and image names that it is known by."""

    name: str
    words: frozenset[str]
    setting: str
    """What bounds it, as people write it."""
    measure: Literal["Share", "LeftMiB", "LeftBytes", "Bytes"]
    """Share: at most this part of the card. Left: at least so much of the card. Bytes: at most."""
    spellings: frozenset[str] = frozenset()
    """Of the argument, with hyphens."""
    variable: str = ""
    """That says the same."""
    remark: str = ""
    lowered_by_shim: bool = False
    """Where injection.serverArgs is Enabled."""


SERVERS: Final = (
    Server(
        "vLLM",
        frozenset({"vllm", "vllm-openai", "vllm.entrypoints.openai.api_server"}),
        "--gpu-memory-utilization",
        "Share",
        frozenset({"--gpu-memory-utilization", "--device-memory-utilization"}),
        lowered_by_shim=True,
    ),
    Server(
        "SGLang",
        frozenset({"sglang", "sglang.launch_server"}),
        "--mem-fraction-static",
        "Share",
        frozenset({"--mem-fraction-static"}),
    ),
    Server(
        "Text Generation Inference",
        frozenset({"text-generation-launcher", "text-generation-inference"}),
        "--cuda-memory-fraction",
        "Share",
        frozenset({"--cuda-memory-fraction"}),
        "CUDA_MEMORY_FRACTION",
    ),
    Server(
        "llama.cpp",
        frozenset({"llama-server", "llama-cli", "llama.cpp"}),
        "--fit-target",
        "LeftMiB",
        frozenset({"--fit-target", "-fitt"}),
        "LLAMA_ARG_FIT_TARGET",
        "or fewer --n-gpu-layers: it has no absolute cap",
    ),
    Server(
        "Ollama",
        frozenset({"ollama"}),
        "OLLAMA_GPU_OVERHEAD",
        "LeftBytes",
        variable="OLLAMA_GPU_OVERHEAD",
        remark="it plans by it, and is not bound by it",
    ),
    Server(
        "Triton",
        frozenset({"tritonserver"}),
        "--cuda-memory-pool-byte-size=<gpu>:<bytes>",
        "Bytes",
        remark="and each backend a limit of its own: the pool is not what backends take",
    ),
)


def warnings(
    container: Mapping[str, Any],
    cap_bytes: int | None,
    *,
    cards: Cards,
    lowers: bool = False,
) -> tuple[str, ...]:
    """What to tell about the server that a container runs.

    Nothing without a cap or a server, where the author gave a value that fits all `cards`, and of
    a server that the shim lowers, which is so with `lowers`.
    """
    server = server_of(container)
    if server is None or cap_bytes is None or (lowers and server.lowered_by_shim):
        return ()
    if _fits(_given(container, server), server, cap_bytes, cards):
        return ()
    parts = [
        f"{server.name} sizes itself by the card and not by the limit: give it {server.setting}"
        f" of {_rule(server, cap_bytes)}{_values(server, cap_bytes, cards)}"
    ]
    return (", ".join([*parts, server.remark]) if server.remark else parts[0],)


def server_of(container: Mapping[str, Any]) -> Server | None:
    """The first known one that the container's command, arguments or image names."""
    words = {posixpath.basename(word) for word in _words(container)} | {_image(container)}
    return next((server for server in SERVERS if server.words & words), None)


def _rule(server: Server, cap_bytes: int) -> str:
    cap = format_bytes(cap_bytes)
    match server.measure:
        case "Share":
            return f"at most {cap} / memory of the card"
        case "LeftMiB":
            return f"at least the card's memory less {cap}, in MiB"
        case "LeftBytes":
            return f"at least the card's memory less {cap}, in bytes"
        case "Bytes":
            return f"at most {cap_bytes}"


def _values(server: Server, cap_bytes: int, cards: Cards) -> str:
    if server.measure == "Bytes":
        return ""
    if not cards:
        example = show_bytes(_EXAMPLE_BYTES)
        return f" ({_value(server, cap_bytes, _EXAMPLE_BYTES)} with {example})"
    # The largest first: its value is within the limit on all others as well.
    rows = sorted(cards.items(), key=lambda row: (-row[1], row[0]))
    shown = ", ".join(
        f"{_value(server, cap_bytes, total)} on {model}" for model, total in rows[:_SHOWN_MODELS]
    )
    more = len(rows) - _SHOWN_MODELS
    return f": {shown} and {count(more, 'more model')}" if more > 0 else f": {shown}"


def _value(server: Server, cap_bytes: int, total_bytes: int) -> str:
    left = max(0, total_bytes - cap_bytes)
    match server.measure:
        case "LeftMiB":
            return str(-(-left // MIB))
        case "LeftBytes":
            return str(left)
        case _:
            # Rounded down: a fraction that is rounded up is above the limit. A small one is not
            # rounded to nothing, which servers refuse.
            share = min(1.0, cap_bytes / total_bytes)
            return f"{int(1000 * share) / 1000 or share:.3g}"


def _fits(given: str | None, server: Server, cap_bytes: int, cards: Cards) -> bool:
    """Whether the author's value is within the limit on every card; not where none is known."""
    if given is None or not cards or server.measure == "Bytes":
        return False
    try:
        number = float(given)
    except ValueError:
        return False
    largest = max(cards.values())
    if server.measure == "Share":
        return number * largest <= cap_bytes
    left = number * (MIB if server.measure == "LeftMiB" else 1)
    return math.isfinite(left) and left >= largest - cap_bytes


def _given(container: Mapping[str, Any], server: Server) -> str | None:
    """The author's own value, of the last argument or else of the variable."""
    found: str | None = None
    words = [*_words(container), ""]
    for word, following in pairwise(words):
        name, equals, value = word.partition("=")
        if name.replace("_", "-") in server.spellings:
            found = value if equals else following
    if found is None and server.variable:
        for entry in container.get("env") or ():
            if entry.get("name") == server.variable and isinstance(entry.get("value"), str):
                found = entry["value"]
    return found


def _words(container: Mapping[str, Any]) -> Iterator[str]:
    texts: Iterable[Any] = (*(container.get("command") or ()), *(container.get("args") or ()))
    for text in texts:
        # A shell gets its whole line as one argument.
        yield from str(text)[:_LONGEST_TEXT].split()


def _image(container: Mapping[str, Any]) -> str:
    """The last part of the image's name, without tag and digest."""
    image = str(container.get("image") or "").partition("@")[0].rpartition("/")[2]
    return image.partition(":")[0]

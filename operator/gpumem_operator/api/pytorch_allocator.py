"""What PyTorch accepts in PYTORCH_CUDA_ALLOC_CONF: keys, since when, and values.

Sources: the headers `c10/{core,cuda}/*AllocatorConfig.h` in the wheels of torch 2.0.1 to 2.14.1,
and runs of 2.11, 2.14.1 and 2.15.0. An unknown key or a bad value raises at the first CUDA call; a
string that is not `key:value,key:value` aborts the process inside `import torch` (exit code 134),
on machines without a GPU as well.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Version = tuple[int, int]
Kind = Literal["bool", "mb", "fraction", "power", "roundup", "backend"]


@dataclass(frozen=True)
class AllocatorKey:
    """One key: the first release that knows it, the kind of its value, and the least one (mb)."""

    since: Version
    kind: Kind
    least: int = 0


OLDEST: Final[Version] = (2, 0)
FRACTION_KEY: Final = "per_process_memory_fraction"
NEVER_VALID: Final = ("growth_factor", "growt_factor", "expandable_segments_handle_type")
"""Keys that are passed around, the last one by PyTorch's own advice, and that no release takes."""

KEYS: Final[Mapping[str, AllocatorKey]] = {
    "backend": AllocatorKey((2, 0), "backend"),
    # More than 20 until 2.9, at least 20 from 2.10: 21 is right everywhere.
    "max_split_size_mb": AllocatorKey((2, 0), "mb", least=21),
    "roundup_power2_divisions": AllocatorKey((2, 0), "roundup"),
    "garbage_collection_threshold": AllocatorKey((2, 0), "fraction"),
    "expandable_segments": AllocatorKey((2, 1), "bool"),
    "release_lock_on_cudamalloc": AllocatorKey((2, 2), "bool"),
    "pinned_use_cuda_host_register": AllocatorKey((2, 2), "bool"),
    "pinned_num_register_threads": AllocatorKey((2, 2), "power"),
    "max_non_split_rounding_mb": AllocatorKey((2, 6), "mb", least=21),
    "pinned_use_background_threads": AllocatorKey((2, 6), "bool"),
    "graph_capture_record_stream_reuse": AllocatorKey((2, 9), "bool"),
    "pinned_reserve_segment_size_mb": AllocatorKey((2, 10), "mb", least=1),
    "large_segment_size_mb": AllocatorKey((2, 11), "mb", least=11),
    "throw_on_cudamalloc_oom": AllocatorKey((2, 12), "bool"),
    "pinned_free_catch_all": AllocatorKey((2, 12), "bool"),
    "pinned_max_round_threshold_mb": AllocatorKey((2, 13), "mb", least=1),
    "pinned_max_cached_size_mb": AllocatorKey((2, 13), "mb", least=1),
}
"""Keys that a policy may set. The fraction is missing on purpose: the limit decides it."""

_DIVISIONS: Final = "1|2|4|8|16|32|64"
_INTERVALS: Final = "|".join(str(2**power) for power in range(21))
"""In MiB, up to 1 TiB."""

PATTERNS: Final[Mapping[Kind, str]] = {
    "bool": r"^(True|False)$",
    "backend": r"^(native|cudaMallocAsync)$",
    "mb": r"^[0-9]{1,9}$",
    # With more digits, 0.99... is 1.0 in double precision.
    "fraction": r"^0?\.[0-9]{0,7}[1-9][0-9]{0,7}$",
    "power": r"^(1|2|4|8|16|32|64|128)$",
    # 0 switches rounding off for one interval only.
    "roundup": (
        rf"^(({_DIVISIONS})|\[(({_INTERVALS}):(0|{_DIVISIONS}),){{0,15}}"
        rf"({_INTERVALS}|>):(0|{_DIVISIONS})\])$"
    ),
}
"""What a value of each kind looks like, in the regular expressions that RE2 and Python share."""

EXPECTED: Final[Mapping[Kind, str]] = {
    "bool": "exactly True or False",
    "backend": "native or cudaMallocAsync",
    "mb": "a whole number of MiB",
    "fraction": "a number between 0 and 1, both excluded, such as 0.8, with at most 15 digits",
    "power": "a power of 2 up to 128",
    "roundup": "a power of 2, or a list with powers of 2 such as [256:1,512:2,>:8]",
}

_PAIR: Final = re.compile(r"\s*([A-Za-z0-9_]+)\s*:\s*(\[[^\]]*\]|[^,:\[\]\s;=]+)\s*")


class AllocatorSyntaxError(ValueError):
    """The string is not `key:value,key:value`: `import torch` would abort on it."""


def parse_config(text: str) -> dict[str, str]:
    """Keys and values of an allocator string; of a key that is repeated, the last one, as PyTorch.

    Raises AllocatorSyntaxError for anything that PyTorch's own tokenizer could stumble over.
    """
    settings: dict[str, str] = {}
    position = 0
    end = len(text.rstrip())  # PyTorch skips blanks, also those behind the last comma
    while position < end:
        match = _PAIR.match(text, position)
        if match is None or (match.end() < len(text) and text[match.end()] != ","):
            raise AllocatorSyntaxError(_syntax_message(text, position))
        settings.pop(match[1], None)
        settings[match[1]] = re.sub(r"\s", "", match[2])
        position = match.end() + 1
    return settings


def _syntax_message(text: str, position: int) -> str:
    return (
        f"{text[position : position + 64]!r} is not an allocator configuration (from character "
        f"{position + 1} on): "
        "PyTorch aborts on it inside `import torch`; write key:value,key:value, "
        "for example max_split_size_mb:128,expandable_segments:True"
    )


def format_config(settings: Mapping[str, str]) -> str:
    """The allocator string of these settings, in their order."""
    return ",".join(f"{key}:{value}" for key, value in settings.items())


def parse_version(text: str) -> Version:
    """`"2.10"` as (2, 10): versions are compared as numbers, 2.9 is older than 2.10."""
    major, minor = text.split(".")
    return int(major), int(minor)


def problem_of_value(key: str, value: str) -> str | None:
    """What PyTorch would not like about the value of a known key, or None."""
    spec = KEYS[key]
    fits = re.fullmatch(PATTERNS[spec.kind], value) is not None
    if fits and spec.kind == "mb":
        fits = int(value) >= spec.least
    return None if fits else f"{key}: '{value}' is refused by PyTorch: it takes {expected(key)}"


def expected(key: str) -> str:
    """What the value of a known key has to be, in words."""
    spec = KEYS[key]
    bound = f" of at least {spec.least}" if spec.kind == "mb" else ""
    return EXPECTED[spec.kind] + bound


def format_version(version: Version) -> str:
    """`(2, 10)` as `"2.10"`."""
    return f"{version[0]}.{version[1]}"

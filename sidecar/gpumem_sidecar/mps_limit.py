"""CUDA_MPS_PINNED_DEVICE_MEM_LIMIT of a client of MPS, as it was started. The parsing is pure.

The form is `0=8192M,GPU-1234=1G`: ordinals as the client counts its GPUs, or UUIDs, of which the
beginning is enough. Which ordinal is which card is not known out here: the largest counts, and only
where every GPU on which the client is listed has one.
"""

from __future__ import annotations

import re

VARIABLE = b"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="
LONGEST_ENVIRONMENT = 256 * 1024
MOST_ORDINALS = 64
LARGEST = 2**63 - 1
_ENTRY = re.compile(r"\s*([^=\s]+)\s*=\s*(\d{1,15})([KMG]?)B?\s*", re.ASCII | re.IGNORECASE)
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def text_of(pid: int, proc: str = "/proc") -> str | None:
    """The variable; None where it is not set, or the environment may not be read."""
    try:
        with open(f"{proc}/{pid}/environ", "rb") as file:
            content = file.read(LONGEST_ENVIRONMENT)
    except OSError:
        return None
    for entry in content.split(b"\0"):
        if entry.startswith(VARIABLE):
            return entry[len(VARIABLE) :].decode(errors="replace")
    return None


def limit_on(gpu: str, gpus: int, text: str | None) -> int | None:
    """Bytes on this GPU of a client that is listed on so many; None where it has no limit."""
    sizes = _sizes(text or "")
    for key, size in sizes.items():
        if not key.isdecimal() and gpu.startswith(key):
            return size
    ordinals = [sizes.get(str(number)) for number in range(min(gpus, MOST_ORDINALS))]
    known = [size for size in ordinals if size is not None]
    return max(known) if known and len(known) == gpus else None


def _sizes(text: str) -> dict[str, int]:
    sizes = {}
    for entry in text.split(","):
        match = _ENTRY.fullmatch(entry)
        if match:
            size = int(match[2]) * _UNITS[match[3].upper()]
            if 0 < size <= LARGEST:
                sizes[match[1]] = size
    return sizes

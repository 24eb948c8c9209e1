"""MPS: a limit for every ordinal, which only a client of an MPS server obeys.

The form is `0=8192M,1=8192M`; suffixes are binary. Without a server the variable is ignored, so it
is always set. Per process, not per container. Source: measured with 0=4G on an H200, driver 580.
"""

import re
from typing import Final

from gpumem_operator import names
from gpumem_operator.api.quantity import MIB
from gpumem_operator.injection.environment import Cap, Environment, Variables
from gpumem_operator.injection.target import Target

_ENTRY: Final = re.compile(r"\s*(\d{1,4})\s*=\s*(\d{1,15})([KMG]?)B?\s*", re.ASCII | re.IGNORECASE)
_UNITS: Final = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def variables(target: Target, _environment: Environment) -> Variables:
    """CUDA_MPS_PINNED_DEVICE_MEM_LIMIT for every GPU that the container asks for."""
    limit = target.process_bytes
    if limit is None or limit < MIB or not target.gpu_count:
        return Variables()
    ours = dict.fromkeys(range(min(target.gpu_count, 64)), limit)

    def lower(theirs: str) -> str:
        parsed = _parse(theirs)
        return _format({n: min(size, parsed.get(n, size)) for n, size in ours.items()})

    return Variables((Cap(names.MPS_LIMIT_ENV, _format(ours), lower),))


def _parse(text: str) -> dict[int, int]:
    """Bytes by ordinal; what is not an ordinal with a positive size in whole MiB is left out."""
    sizes: dict[int, int] = {}
    for entry in text.split(","):
        match = _ENTRY.fullmatch(entry)
        if match and int(match[2]) * _UNITS[match[3].upper()] >= MIB:
            sizes[int(match[1])] = int(match[2]) * _UNITS[match[3].upper()]
    return sizes


def _format(sizes: dict[int, int]) -> str:
    return ",".join(f"{ordinal}={size // MIB}M" for ordinal, size in sizes.items())

"""How much a process may hold, and how its frameworks share that. Pure.

    limit of the container per GPU
    / announced processes                = what one process may hold
    - context reserve                    = the pool that allocators share
    - what is outside beyond the reserve = the pool as it is right now

The reserve is for everything that is in no allocator: the CUDA context, kernels, workspaces, NCCL.
"""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MIB = 2**20
DEFAULT_RESERVE_BYTES = 1024 * MIB
STEP_BYTES = 16 * MIB
"""Excess is counted in whole steps, so that a cap does not move with every measurement."""
SMALLEST_POOL_BYTES = 32 * MIB
"""With less, a framework could not even start."""

MOST_DIGITS = 19
"""Of 64 bits with a sign. Python itself refuses to read some thousands of them."""

NO_LIMIT = "NoLimit"
"""Nothing was declared for the container."""
TOO_NEAR = "TooNear"
"""The reserve leaves nothing of the limit."""


@dataclass(frozen=True)
class Limits:
    """What admission wrote into the container's environment."""

    limit_bytes: int | None
    """Per GPU, for all processes of the container; None where nothing was declared."""
    reserve_bytes: int = DEFAULT_RESERVE_BYTES
    """Per process and GPU."""
    processes: int = 1
    """That share a GPU."""

    @property
    def pool_bytes(self) -> int | None:
        """What all allocators of one process may hold together on one GPU; None: `obstacle`."""
        if self.limit_bytes is None:
            return None
        pool = self.limit_bytes // self.processes // MIB * MIB - self.reserve_bytes
        return pool if pool >= SMALLEST_POOL_BYTES else None

    @property
    def obstacle(self) -> str | None:
        """Why there is no cap to set, in one word; None where there is one."""
        if self.pool_bytes is not None:
            return None
        return NO_LIMIT if self.limit_bytes is None else TOO_NEAR


def limits_from(environment: Mapping[str, str]) -> Limits:
    """Reads GPUMEM_*; what can not be read counts as not set."""
    reserve = number(environment.get("GPUMEM_CONTEXT_RESERVE_BYTES"))
    return Limits(
        number(environment.get("GPUMEM_LIMIT_BYTES")),
        DEFAULT_RESERVE_BYTES if reserve is None else reserve,
        number(environment.get("GPUMEM_PROCESSES_PER_GPU")) or 1,
    )


def number(text: str | None) -> int | None:
    """A whole number that is not negative, or None; none has more digits than bytes can need."""
    readable = text and len(text) <= MOST_DIGITS and text.isascii() and text.isdecimal()
    return int(text) if text and readable else None


def excess(outside_bytes: int | None, reserve_bytes: int) -> int:
    """What is held outside the allocators beyond the reserve, in whole steps."""
    over = max(0, (outside_bytes or 0) - reserve_bytes)
    return -(-over // STEP_BYTES) * STEP_BYTES


@dataclass(frozen=True)
class Share:
    """One framework that uses a GPU."""

    name: str
    held_bytes: int
    """In its allocator, cached blocks included."""
    fixed_bytes: int | None = None
    """The cap of one that can not be changed any more."""


def split(pool_bytes: int, shares: Iterable[Share]) -> dict[str, int]:
    """The cap of each framework whose cap can change: what it holds and an equal part of the rest.

    All caps together are at most the pool, from 1 MiB on. Where more is held already, those who
    hold most get a cap below it and can not grow. No cap is 0, which frameworks take for none.
    """
    all_of_them = list(shares)
    moving = [share for share in all_of_them if share.fixed_bytes is None]
    free = pool_bytes - sum(share.held_bytes for share in moving)
    free -= sum(share.fixed_bytes or 0 for share in all_of_them)
    # Room for the one byte that those have whose part is nothing.
    free -= MIB if len(moving) > 1 else 0
    part, debt = max(0, free) // max(1, len(moving)), max(0, -free)
    caps = {}
    for share in sorted(moving, key=lambda share: -share.held_bytes):
        given_up = min(debt, share.held_bytes)
        debt -= given_up
        caps[share.name] = max(1, (share.held_bytes - given_up + part) // MIB * MIB)
    return caps


def fraction_of(cap_bytes: int, total_bytes: int) -> float:
    """The largest fraction that is at most the cap as a framework computes it:
    int(fraction * total) in double precision. 1.0 where the card has no more than the cap."""
    if cap_bytes >= total_bytes:
        return 1.0
    fraction = cap_bytes / total_bytes
    while int(fraction * total_bytes) > cap_bytes:
        fraction -= fraction * 2**-52
    return fraction

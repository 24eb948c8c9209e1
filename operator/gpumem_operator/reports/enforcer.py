"""What can hold a limit, from the strongest to nothing.

Hardware   the limit is a whole card that nobody else gets, or a MIG slice
Driver     the driver's own limit on the container's cgroup, read back by the agent
MPS        the MPS server's limit on each process
Framework  the caps that the shim set in each process
Unknown    there is no fresh evidence; the reason says why
None       measured, and nothing holds the limit; the reason says more
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from gpumem_operator.reports.reasons import NO_PROCESS

Kind = Literal["Hardware", "Driver", "MPS", "Framework", "None", "Unknown"]
WEAKEST_FIRST: Final[tuple[Kind, ...]] = (
    "None",
    "Unknown",
    "Framework",
    "MPS",
    "Driver",
    "Hardware",
)


@dataclass(frozen=True, slots=True)
class Enforcer:
    """Who holds a limit; None and Unknown have a reason, see `reasons.py`."""

    kind: Kind
    reason: str = ""
    detail: str = ""
    """What it was seen by, for people: a process, amounts."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}" if self.reason else self.kind


HARDWARE: Final = Enforcer("Hardware")
DRIVER: Final = Enforcer("Driver")
MPS: Final = Enforcer("MPS")
FRAMEWORK: Final = Enforcer("Framework")
IDLE: Final = Enforcer("Unknown", NO_PROCESS)


def strength(enforcer: Enforcer) -> int:
    """0 for the weakest."""
    return WEAKEST_FIRST.index(enforcer.kind)


def weakest(enforcers: Iterable[Enforcer]) -> Enforcer:
    """The first of the weakest; IDLE where there is none at all."""
    return min(enforcers, key=strength, default=IDLE)

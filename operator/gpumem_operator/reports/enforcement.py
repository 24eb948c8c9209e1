"""What really holds a container's limit, by evidence alone.

Hardware   the limit is a whole card that nobody else gets, or a MIG slice
None       measured, and nothing holds the limit; the reason says more
Unknown    there is no fresh evidence; the reason is that of the measurement
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from gpumem_operator.reports.measured import GpuContainer
from gpumem_operator.reports.uses import PodUse

Kind = Literal["Hardware", "None", "Unknown"]
_WEAKEST_FIRST: Final[tuple[Kind, ...]] = ("None", "Unknown", "Hardware")

NO_LIMIT: Final = "NoLimit"
OVER_LIMIT: Final = "OverLimit"
NOT_HELD: Final = "NotHeld"
"""Nothing shows that the limit is held: what frameworks do with it has not been read back."""


@dataclass(frozen=True, slots=True)
class Enforcer:
    """Who holds the limit; `reason` is empty for Hardware."""

    kind: Kind
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}" if self.reason else self.kind


HARDWARE: Final = Enforcer("Hardware")


def enforcer_of(container: GpuContainer, use: PodUse) -> Enforcer:
    """Who holds the limit of one GPU container."""
    if _held_by_hardware(container):
        return HARDWARE
    amounts = [row.amount for row in use.rows if row.container == container.name]
    limit = container.limit_bytes
    if limit is not None and any((amount.bytes or 0) > limit for amount in amounts):
        return Enforcer("None", OVER_LIMIT)
    unknown = next((amount.unknown for amount in amounts if not amount.known), None)
    if unknown is not None:
        return Enforcer("Unknown", unknown)
    return Enforcer("None", NO_LIMIT if limit is None else NOT_HELD)


def enforcer_of_pod(use: PodUse) -> Enforcer:
    """A pod is as good as its weakest container."""
    return weakest(enforcer_of(container, use) for container in use.pod.containers)


def weakest(enforcers: Iterable[Enforcer]) -> Enforcer:
    """The first of the weakest; Unknown where there is none at all."""
    return min(
        enforcers,
        key=lambda enforcer: _WEAKEST_FIRST.index(enforcer.kind),
        default=Enforcer("Unknown", NO_LIMIT),
    )


def _held_by_hardware(container: GpuContainer) -> bool:
    if container.profile_bytes is not None:
        return container.limit_bytes is None or container.limit_bytes >= container.profile_bytes
    return container.exclusive and container.limit_bytes is None

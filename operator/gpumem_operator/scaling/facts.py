"""What a decision about one workload is made from, gathered by the shell at one moment."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class TargetPod:
    """One GPU pod of the workload that has neither finished nor been deleted."""

    name: str
    started: bool
    """Whether a container of it may run; before that it holds nothing, and soon it will."""
    limit_bytes: int | None = None
    """Over all its GPUs; None or 0 where it has no limit to compare with."""
    used_bytes: int | None = None
    """What it holds; None where that is not known."""
    unknown: str | None = None
    """Why its use is not known."""
    preallocator: str | None = None
    """What in it takes memory ahead of need, for people; None where nothing is known to."""
    signal: Fraction | None = None
    """The metric of its engine; None where it was not read."""
    signal_unknown: str | None = None
    """Why it was not read."""


@dataclass(frozen=True, slots=True)
class TenantRoom:
    """What one tenant can still pay for."""

    tenant: str
    room_bytes: int
    """Quota less what is charged, reserved, waiting behind the gate, and pledged to replicas that
    have no pod yet. Negative where more was given away than there is."""
    pod_bytes: int | None
    """What one more pod of the workload is charged; None where that can not be told."""


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """One workload."""

    replicas: int
    """What its scale asks for now."""
    pods: tuple[TargetPod, ...] = ()
    rooms: tuple[TenantRoom, ...] = ()
    """Of every tenant that pays for its pods and does not let them in past the quota."""


@dataclass(frozen=True, slots=True)
class PodLoad:
    """One pod in the unit of a metric, whatever that is."""

    capacity: int | Fraction
    """The amount at which the pod is exactly on target; above 0."""
    full: int | Fraction
    """What is counted for it, when shrinking, where its amount is not known."""
    amount: int | Fraction | None
    started: bool = True
    unknown: str = ""
    """Why a started pod has no amount."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a metric says of a workload."""

    loads: tuple[PodLoad, ...]
    told: str
    """The numbers for people: follows 'its pods'."""
    percent: int | None = None
    """Used memory in percent of the limits, where that is the metric and known."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Replicas stay as they are."""

    reason: str
    message: str

"""Who leads, decided from a Lease that everyone reads and writes: pure, no clock and no requests.

    not seen leading --take--> leading --renew--> leading ... --release--> nobody leads
           ^                      |
           +------- wait          +-- no renewal for `renew_seconds`: stop, before others may take

A candidate does not trust the clocks of others. It takes a Lease over when the Lease did not change
for its duration on the candidate's own monotonic clock. The leader stops by its own monotonic clock
too, and earlier: from `renew_seconds` to `lease_seconds` nobody leads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from gpumem_operator.kube.resources import LEASES


@dataclass(frozen=True)
class Timings:
    """Three periods in seconds, each longer than the next."""

    lease_seconds: int = 15
    """How long others wait for a leader that falls silent."""
    renew_seconds: float = 10.0
    """How long a leader goes on without a renewal that succeeded."""
    retry_seconds: float = 2.0
    """Between two tries, of the leader and of candidates."""

    def __post_init__(self) -> None:
        if not self.lease_seconds > self.renew_seconds > self.retry_seconds > 0:
            raise ValueError(f"{self}: each period must be longer than the next, and above 0")


DEFAULT_TIMINGS: Final = Timings()


@dataclass(frozen=True)
class Claim:
    """What a Lease says. An empty holder: nobody leads."""

    holder: str = ""
    duration_seconds: int = 0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0


@dataclass(frozen=True)
class Sighting:
    """A claim, and when on our monotonic clock it was first seen to be like this."""

    claim: Claim
    since: float


class Step(Enum):
    """What a candidate or leader does next."""

    TAKE = auto()
    """Write ourselves into the Lease."""
    RENEW = auto()
    """It is ours: write that we are still here."""
    WAIT = auto()
    """Somebody else leads, or may still believe so."""


def read_claim(lease: Mapping[str, Any]) -> Claim:
    """The claim in a Lease object; fields that are not there are empty."""
    spec = lease.get("spec") or {}
    return Claim(
        holder=spec.get("holderIdentity") or "",
        duration_seconds=spec.get("leaseDurationSeconds") or 0,
        acquired=spec.get("acquireTime") or "",
        renewed=spec.get("renewTime") or "",
        transitions=spec.get("leaseTransitions") or 0,
    )


def observe(last: Sighting | None, claim: Claim, now: float) -> Sighting:
    """The sighting after a look at the Lease at monotonic time `now`."""
    return last if last is not None and last.claim == claim else Sighting(claim, now)


def decide(sighting: Sighting, identity: str, now: float) -> Step:
    """What the process called `identity` does about the Lease as it last saw it."""
    claim = sighting.claim
    if claim.holder == identity:
        return Step.RENEW
    if not claim.holder or now >= sighting.since + claim.duration_seconds:
        return Step.TAKE
    return Step.WAIT


def claimed(claim: Claim, identity: str, *, wall_time: str, timings: Timings) -> Claim:
    """The claim that `identity` writes: a renewal of its own, or a new one."""
    own = claim.holder == identity
    # A first holder of a fresh Lease is no transition; everyone after it is one, also after a
    # release and also when it is the same process again.
    changed = not own and bool(claim.acquired)
    return Claim(
        holder=identity,
        duration_seconds=timings.lease_seconds,
        acquired=claim.acquired if own else wall_time,
        renewed=wall_time,
        transitions=claim.transitions + changed,
    )


def released(claim: Claim, *, wall_time: str) -> Claim:
    """The claim that a leader leaves behind: whoever looks next may lead at once."""
    return Claim(
        holder="",
        duration_seconds=1,
        acquired=claim.acquired,
        renewed=wall_time,
        transitions=claim.transitions,
    )


def lease_object(
    lease: Mapping[str, Any] | None, claim: Claim, *, name: str, namespace: str
) -> Any:
    """The Lease to write: a new one, or the one that was read, with its resourceVersion."""
    stored = lease or {
        "apiVersion": f"{LEASES.group}/{LEASES.version}",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace},
    }
    spec = {
        **(stored.get("spec") or {}),
        "holderIdentity": claim.holder,
        "leaseDurationSeconds": claim.duration_seconds,
        "acquireTime": claim.acquired,
        "renewTime": claim.renewed,
        "leaseTransitions": claim.transitions,
    }
    return {**stored, "spec": spec}

"""Everything that is told about GPU memory at one moment: the one source of status, series and
command line, so that no two of them can disagree."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Final

from gpumem_operator.api.measure import Measure
from gpumem_operator.reports.cap_hits import CapPlace
from gpumem_operator.reports.cards import Card
from gpumem_operator.reports.counters import Account, Totals
from gpumem_operator.reports.enforcement import enforcers_of
from gpumem_operator.reports.enforcer import Enforcer, weakest
from gpumem_operator.reports.others import OtherUse
from gpumem_operator.reports.tenant_view import TenantView
from gpumem_operator.reports.uses import PodUse

_NOT_QUEUED: Final[Mapping[str, int | None]] = MappingProxyType({})


@dataclass(frozen=True)
class PodView:
    """One GPU pod that has not finished."""

    use: PodUse
    declared_bytes: int | None
    """What it asked for; None where it did not say."""
    charges: Mapping[str, int | None]
    """By the name of each tenant that pays for it; None where the charge is not known."""
    queued: Mapping[str, int | None] = field(default_factory=dict)
    """What it will be charged, by the name of each tenant, while it waits behind our gate."""
    enforcers: Mapping[str, Enforcer] = field(default_factory=dict)
    """By container: those that ask for GPUs, and others that hold GPU memory all the same."""

    @cached_property
    def enforcer(self) -> Enforcer:
        """A pod is as good as its weakest container."""
        return weakest(self.enforcers.values())

    @property
    def unmeasured(self) -> bool:
        """It may hold something, and what is not known."""
        return not self.use.total.known

    @property
    def used_bytes(self) -> int | None:
        """What it holds; None where that is not known."""
        return self.use.total.bytes

    @property
    def measure(self) -> Measure:
        """As statuses and sums count it."""
        total, kind = self.use.total, self.enforcer.kind.lower()
        started = self.use.pod.started or self.unmeasured
        return Measure(self.used_bytes, total.unknown, started, kind)


@dataclass(frozen=True)
class Snapshot:
    """One moment."""

    pods: Mapping[str, PodView] = field(default_factory=dict)
    """By uid."""
    cards: tuple[Card, ...] = ()
    totals: Mapping[Account, Totals] = field(default_factory=dict)
    tenants: tuple[TenantView, ...] = ()
    """By name."""
    cap_hits: Mapping[CapPlace, int] = field(default_factory=dict)
    others: tuple[OtherUse, ...] = ()
    """What agents see of pods that are in `pods` not: they ask for no GPU, or have ended."""


def view_of(
    use: PodUse,
    *,
    declared_bytes: int | None,
    charges: Mapping[str, int | None],
    queued: Mapping[str, int | None] = _NOT_QUEUED,
) -> PodView:
    """The view of one pod, with what holds its limits."""
    return PodView(use, declared_bytes, charges, queued, enforcers_of(use))

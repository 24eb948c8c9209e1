"""Series about tenants' quotas, read from what the leader knows whenever somebody scrapes.

What is not known has no series: neither the quota of a spec that can not be read nor what has not
been counted yet.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

LABELS: Final = ("tenant",)


@dataclass(frozen=True)
class TenantView:
    """One tenant at one moment; None is what is not known."""

    name: str
    quota_bytes: int | None
    charged_bytes: int | None
    reserved_bytes: int
    """Kept for pods that are not charged yet."""
    queued_bytes: int | None
    waiting_since: tuple[float, ...] | None
    """Seconds since 1970 at which pods were created that wait for room of this tenant."""


class TenantsCollector(Collector):
    """The quotas of all tenants, and who waits for them."""

    def __init__(self, tenants: Callable[[], Iterable[TenantView]]) -> None:
        self._tenants = tenants

    def describe(self) -> list[Metric]:
        """Nothing, so that registering looks at nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        views = tuple(self._tenants())
        for series, text, value in _SERIES:
            family = GaugeMetricFamily(series, text, labels=LABELS)
            for view in views:
                if (known := value(view)) is not None:
                    family.add_metric([view.name], known)
            yield family


_SERIES: Final[tuple[tuple[str, str, Callable[[TenantView], float | None]], ...]] = (
    (
        "gpumem_tenant_quota_bytes",
        "What the pods of a tenant may be charged together.",
        lambda view: view.quota_bytes,
    ),
    (
        "gpumem_tenant_charged_bytes",
        "What the pods of a tenant are charged.",
        lambda view: view.charged_bytes,
    ),
    (
        "gpumem_tenant_reserved_bytes",
        "Room that is kept for pods of a tenant that are not charged yet.",
        lambda view: view.reserved_bytes,
    ),
    (
        "gpumem_tenant_queued_bytes",
        "What the pods that wait for room of a tenant ask for.",
        lambda view: view.queued_bytes,
    ),
    (
        "gpumem_tenant_waiting_pods",
        "Pods that wait for room of a tenant.",
        lambda view: None if view.waiting_since is None else len(view.waiting_since),
    ),
    (
        "gpumem_tenant_oldest_waiting_timestamp_seconds",
        "When the oldest pod that waits for room of a tenant was created; no series where none"
        " does.",
        lambda view: min(view.waiting_since or (), default=None),
    ),
)

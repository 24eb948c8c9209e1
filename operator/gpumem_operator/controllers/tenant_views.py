"""What the series about tenants show, gathered from the cache at one moment."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from gpumem_operator.api.quantity import add_bytes
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.queue_picture import created_at, needs_of
from gpumem_operator.ledger.reservation import stored_reservations
from gpumem_operator.metrics.tenants import TenantView


def tenant_views(cache: Cache, values: Values) -> Iterator[TenantView]:
    """All tenants, by name; what they are charged is what their stored statuses say."""
    waiting = _waiting_since(cache, values)
    for (_, name), row in sorted(cache.tenants.rows()):
        spec, status = row.value.record.spec, row.value.status
        yield TenantView(
            name=name,
            quota_bytes=None if spec is None else spec.quota.limit_bytes,
            charged_bytes=status.get("chargedBytes"),
            reserved_bytes=add_bytes(one.amount_bytes for one in stored_reservations(status)),
            queued_bytes=status.get("queuedBytes"),
            waiting_since=None if waiting is None else tuple(waiting.get(name, ())),
        )


def _waiting_since(cache: Cache, values: Values) -> Mapping[str, list[float]] | None:
    """By tenant; None where it is not known whom pods wait for: a tenant can not be read."""
    gated = cache.gated_pods()
    if gated and cache.memberships.unreadable:
        return None
    found: defaultdict[str, list[float]] = defaultdict(list)
    for row in gated:
        for tenant in needs_of(cache, values, row.value) or ():
            found[tenant].append(created_at(row.value))
    return found

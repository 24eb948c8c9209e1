"""The pods that a tenant pays for, from what the cache shows."""

from collections.abc import Callable, Iterator

from gpumem_operator.api.measure import NOT_MEASURED, Measure
from gpumem_operator.api.records import TenantRecord
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.entries import PodEntry
from gpumem_operator.ledger.charge import rates_of
from gpumem_operator.ledger.charged_pod import ChargedPod


def _not_measured(_: PodEntry) -> Measure:
    return NOT_MEASURED


def charged_pods(
    cache: Cache,
    values: Values,
    tenant: TenantRecord,
    *,
    measure: Callable[[PodEntry], Measure] = _not_measured,
) -> Iterator[ChargedPod]:
    """With what `measure` says of each; none of a tenant that can not be read."""
    if tenant.spec is None:
        return
    rates = rates_of(tenant.spec.quota, values)
    for namespace in cache.memberships.by_tenant.get(tenant.name, ()):
        for pod in cache.pods_of(namespace):
            if pod.gpu and pod.charged:
                name = pod.pod["metadata"]["name"]
                yield ChargedPod(namespace, name, pod.charge(rates), measure(pod))

"""Which namespaces belong to which tenants: the same answer for statuses, series and people."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpumem_operator import names
from gpumem_operator.api.records import NamespaceRecord, TenantRecord, tenants_of


@dataclass(frozen=True)
class Memberships:
    """Tenants whose spec can be read; what the others mean is not known."""

    by_namespace: Mapping[str, tuple[TenantRecord, ...]] = field(default_factory=dict)
    """Tenants by the name of each namespace that has any, in name order."""
    by_tenant: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of namespaces by the name of each tenant, in name order."""
    isolated: frozenset[str] = frozenset()
    """Namespaces in which containers that ask for no GPU get none."""
    unreadable: bool = False
    """Whether there is any tenant of which it is not known which namespaces it means."""

    def not_isolated(self, tenant: str) -> tuple[str, ...]:
        """The tenant's namespaces that are not, in name order."""
        return tuple(n for n in self.by_tenant.get(tenant, ()) if n not in self.isolated)

    def shared(self, tenant: str) -> Mapping[str, tuple[str, ...]]:
        """The tenant's namespaces that others have too, with the names of these."""
        return {
            namespace: others
            for namespace in self.by_tenant.get(tenant, ())
            if (others := self._others(namespace, tenant))
        }

    def _others(self, namespace: str, tenant: str) -> tuple[str, ...]:
        return tuple(one.name for one in self.by_namespace[namespace] if one.name != tenant)


def memberships(
    namespaces: Iterable[NamespaceRecord], tenants: Iterable[TenantRecord]
) -> Memberships:
    """Every namespace is asked for, once for each tenant."""
    tenants = tuple(tenants)
    readable = tuple(tenant for tenant in tenants if tenant.spec is not None)
    by_tenant: dict[str, list[str]] = {tenant.name: [] for tenant in readable}
    by_namespace = {}
    isolated = set()
    for namespace in sorted(namespaces, key=lambda record: record.name):
        if chosen := tenants_of(namespace, readable):
            by_namespace[namespace.name] = chosen
        if namespace.labels.get(names.ISOLATE_LABEL) == "true":
            isolated.add(namespace.name)
        for tenant in chosen:
            by_tenant[tenant.name].append(namespace.name)
    places = {name: tuple(found) for name, found in by_tenant.items()}
    return Memberships(
        by_namespace, places, frozenset(isolated), unreadable=len(readable) < len(tenants)
    )

"""What changed since tenants were last counted."""

from dataclasses import dataclass, field

from gpumem_operator.controllers.cache import Cache


@dataclass
class Touched:
    """Namespaces with changes. Mutable: listeners add to it."""

    namespaces: set[str] = field(default_factory=set)
    everything: bool = False

    def add(self, other: "Touched") -> None:
        self.namespaces |= other.namespaces
        self.everything = self.everything or other.everything

    def tenants(self, cache: Cache) -> frozenset[str]:
        """Those to count again at once: their webhooks give room away by what is stored.

        The others can wait for the statuses, which are written at their own pace.
        """
        if self.everything:
            return frozenset(cache.memberships.by_tenant)
        return frozenset(
            record.name
            for namespace in self.namespaces
            for record in cache.memberships.by_namespace.get(namespace, ())
            if record.spec is not None and record.spec.quota.on_exceeded == "Reject"
        )

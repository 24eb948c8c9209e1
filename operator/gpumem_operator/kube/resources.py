"""The kinds that the controller reads and writes, and their addresses at the API server."""

from dataclasses import dataclass
from typing import Final

from gpumem_operator import names


@dataclass(frozen=True)
class Resource:
    """One kind, as it stands in URLs."""

    group: str
    version: str
    plural: str

    def path(self, name: str = "", *, namespace: str = "", subresource: str = "") -> str:
        """The path of one object, or of all objects where `name` is empty."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)


POLICIES: Final = Resource(names.GROUP, names.VERSION, names.POLICY_PLURAL)
TENANTS: Final = Resource(names.GROUP, names.VERSION, names.TENANT_PLURAL)
NAMESPACES: Final = Resource("", "v1", "namespaces")
PODS: Final = Resource("", "v1", "pods")
NODES: Final = Resource("", "v1", "nodes")
SECRETS: Final = Resource("", "v1", "secrets")
CONFIG_MAPS: Final = Resource("", "v1", "configmaps")
EVENTS: Final = Resource("", "v1", "events")
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases")
MUTATING_WEBHOOKS: Final = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"
)
VALIDATING_WEBHOOKS: Final = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"
)
TOKEN_REVIEWS: Final = Resource("authentication.k8s.io", "v1", "tokenreviews")
SERVICES: Final = Resource("", "v1", "services")
SERVICE_ACCOUNTS: Final = Resource("", "v1", "serviceaccounts")

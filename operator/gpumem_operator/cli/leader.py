"""The leader of a cluster, which knows what is used: through the API server's own proxy.

The proxy passes on nothing that says who asks. So a short-lived token of the reader's account goes
along: whoever has the Role `<release>-reader` can make one, and nobody else is answered.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.cli.rights import who
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import ApiError
from gpumem_operator.kube.resources import SERVICE_ACCOUNTS, SERVICES

_TOKEN_SECONDS: Final = 600
"""The least that an API server gives."""
NO_SUCH: Final = 404
"""There is no account whose token could be made."""
NOBODY_READY: Final = 503
"""The Service has no pod behind it, or the pod leads no more."""
_STORED: Final = "what is shown was stored last by one, and may be old"

NOT_PERMITTED: Final = "NotPermitted"
"""Whoever asks may not ask the leader."""
NO_LEADER: Final = "NoLeader"
"""No leader answered."""


@dataclass(frozen=True)
class Release:
    """Where the operator is installed."""

    namespace: str = "gpumem-system"
    name: str = "gpu-memory-operator"


async def ask(
    api: Api, release: Release, *, namespace: str = "", pod: str = ""
) -> Mapping[str, Any]:
    """What pods and cards hold, see `reports.document`. Raises ApiError."""
    return await _ask(api, release, "usage", {"namespace": namespace, "pod": pod})


async def ask_tenants(api: Api, release: Release, *, tenant: str = "") -> Mapping[str, Any]:
    """What tenants are charged and hold, see `reports.tenants_document`. Raises ApiError."""
    return await _ask(api, release, "tenants", {"tenant": tenant})


async def _ask(
    api: Api, release: Release, what: str, about: Mapping[str, str]
) -> Mapping[str, Any]:
    account = SERVICE_ACCOUNTS.path(
        f"{release.name}-reader", namespace=release.namespace, subresource="token"
    )
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": [names.TOKEN_AUDIENCE], "expirationSeconds": _TOKEN_SECONDS},
    }
    token = (await api.create(account, request))["status"]["token"]
    service = SERVICES.path(
        f"https:{release.name}-report:reports", namespace=release.namespace, subresource="proxy"
    )
    return await api.request(
        "GET",
        f"{service}/v1/{what}",
        query={key: value for key, value in about.items() if value},
        headers={names.READER_HEADER: token},
    )


def why_not_asked(error: ApiError, release: Release) -> str:
    """A sentence on why the leader did not answer, with the next step."""
    place = f"the leader of release {release.namespace}/{release.name}"
    if error.status in (401, 403):
        return (
            f"what is measured is not shown, since {who(error)} may not ask {place}: bind Role"
            f" {release.name}-reader in namespace {release.namespace}"
        )
    if error.status == NO_SUCH:
        return (
            f"no release {release.name} is in namespace {release.namespace} (--release-name,"
            f" --release-namespace): {_STORED}"
        )
    if error.status == NOBODY_READY:
        return (
            f"{place} does not answer ({NOBODY_READY}): {_STORED}. Look whether a controller runs:"
            f" kubectl get pods -n {release.namespace}"
        )
    return f"{place} could not be asked: {error}"


def why_unknown(error: ApiError) -> str:
    """The reason that stands in the place of what the leader would know."""
    return NOT_PERMITTED if error.status in (401, 403) else NO_LEADER

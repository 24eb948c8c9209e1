"""Autoscalers of others: where one has the same target, two loops would pull at its replicas."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from gpumem_operator.api.scaling import TargetRef
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import NotFound
from gpumem_operator.kube.resources import Resource


class _Kind(NamedTuple):
    """One kind of autoscaler."""

    name: str
    resource: Resource
    default_version: str
    default_kind: str


_KINDS: Final = (
    _Kind(
        "HorizontalPodAutoscaler", Resource("autoscaling", "v2", "horizontalpodautoscalers"), "", ""
    ),
    # KEDA makes a HorizontalPodAutoscaler for most of its objects, but not for a paused one.
    _Kind(
        "ScaledObject", Resource("keda.sh", "v1alpha1", "scaledobjects"), "apps/v1", "Deployment"
    ),
)
Key = tuple[str, str, str]
"""API group, kind and name of a target."""


def key_of(target: TargetRef) -> Key:
    return _group(target.api_version), target.kind, target.name


async def scalers_of(api: Api, namespace: str) -> Mapping[Key, str]:
    """Autoscalers of a namespace, as people name them, by their target. Raises ApiError."""
    found: dict[Key, str] = {}
    for kind in _KINDS:
        for raw in await _list(api, kind.resource, namespace):
            reference = (raw.get("spec") or {}).get("scaleTargetRef") or {}
            key = (
                _group(reference.get("apiVersion") or kind.default_version),
                reference.get("kind") or kind.default_kind,
                reference.get("name") or "",
            )
            found.setdefault(key, f"{kind.name} {raw['metadata']['name']}")
    return found


async def _list(api: Api, resource: Resource, namespace: str) -> list[Any]:
    try:
        return (await api.get(resource.path(namespace=namespace))).get("items") or []
    except NotFound:
        # KEDA is not installed.
        return []


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]

"""Pods that take a GPU through a resource claim: their memory is neither limited nor counted."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpumem_operator.kube.errors import ApiError, NotFound
from gpumem_operator.kube.rest import Api
from gpumem_operator.webhook.surroundings import READ_SECONDS, UnreadableError

RESOURCE_API: Final = "/apis/resource.k8s.io/v1"


@dataclass(frozen=True)
class ClaimUse:
    """One claim of a pod."""

    name: str
    """Its name in the pod."""
    object_name: str
    """Name of the ResourceClaim or of the ResourceClaimTemplate."""
    is_template: bool
    device_classes: tuple[str, ...] | None
    """Classes that it may take devices of; None where the object does not exist yet."""


def claims_of(pod: Mapping[str, Any]) -> Iterator[ClaimUse]:
    """The claims that a pod names, before anything was read."""
    for entry in (pod.get("spec") or {}).get("resourceClaims") or ():
        template = entry.get("resourceClaimTemplateName")
        name = template or entry.get("resourceClaimName") or ""
        yield ClaimUse(entry.get("name") or "", name, bool(template), None)


def device_classes(claim_spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Every class that a ResourceClaim's spec mentions, alternatives included."""
    found: list[str] = []
    for request in (claim_spec.get("devices") or {}).get("requests") or ():
        choices = [request.get("exactly") or {}, *(request.get("firstAvailable") or ())]
        found += [choice["deviceClassName"] for choice in choices if "deviceClassName" in choice]
    return tuple(found)


def describe(uses: Sequence[ClaimUse], gpu_classes: Sequence[str]) -> list[str]:
    """A sentence for each claim that takes a GPU, or that can not be known not to."""
    sentences = []
    for use in uses:
        taken = [name for name in use.device_classes or () if name in gpu_classes]
        if use.device_classes is None:
            kind = "ResourceClaimTemplate" if use.is_template else "ResourceClaim"
            sentences.append(
                f"{kind} {use.object_name} of claim {use.name} does not exist yet: whether it takes"
                " a GPU is not known, and if so its memory is neither limited nor counted here"
            )
        elif taken:
            sentences.append(
                f"takes a GPU through claim {use.name} of class {taken[0]}: its memory is neither"
                " limited nor counted here"
            )
    return sentences


class ClaimReader:
    """Reads the objects behind a pod's claims, uncached: they are created just before the pod."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def read(self, namespace: str, pod: Mapping[str, Any]) -> list[ClaimUse]:
        """Raises UnreadableError."""
        return [await self._read(namespace, use) for use in claims_of(pod)]

    async def _read(self, namespace: str, use: ClaimUse) -> ClaimUse:
        plural = "resourceclaimtemplates" if use.is_template else "resourceclaims"
        path = f"{RESOURCE_API}/namespaces/{namespace}/{plural}/{use.object_name}"
        try:
            raw = await self._api.get(path, seconds=READ_SECONDS)
        except NotFound:
            return use
        except ApiError as error:
            raise UnreadableError(str(error)) from None
        spec = raw.get("spec") or {}
        claim_spec = (spec.get("spec") or {}) if use.is_template else spec
        classes = device_classes(claim_spec)
        return ClaimUse(use.name, use.object_name, use.is_template, classes)

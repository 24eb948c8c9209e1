"""Extended resources that a DeviceClass stands behind: devices without a claim in the pod.

The scheduler makes a claim for a container that has a limit under the name that every class has
(`deviceclass.resource.kubernetes.io/<class>`), or under the one that the class was given
(`spec.extendedResourceName`). A class of that kind which was named `nvidia.com/gpu` is no concern
here: its pods are GPU pods like all others.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpumem_operator.api.pods import is_gpu_resource
from gpumem_operator.kube.errors import ApiError, NotFound
from gpumem_operator.kube.rest import Api
from gpumem_operator.webhook.surroundings import READ_SECONDS, UnreadableError

CLASSES: Final = "/apis/resource.k8s.io/v1/deviceclasses"
IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
_NATIVE: Final = "kubernetes.io/"
"""In the name of a resource: Kubernetes keeps these, so no class can be given such a name."""


def extended_resources(pod: Mapping[str, Any]) -> Iterator[str]:
    """Names with a domain, of which a container asks for more than zero; without those of GPU pods.

    The API server writes a request beside every limit, and takes a class's own name without one.
    """
    spec = pod.get("spec") or {}
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or ():
            asked = (container.get("resources") or {}).get("requests") or {}
            for name, amount in asked.items():
                if "/" in name and amount != "0" and not is_gpu_resource(name):
                    yield name


def describe(behind: Mapping[str, str]) -> list[str]:
    """A sentence for each resource that hands out GPUs; `behind` has their classes."""
    return [
        f"takes a GPU through resource {resource} of class {device_class}: its memory is neither"
        " limited nor counted here"
        for resource, device_class in sorted(behind.items())
    ]


class DeviceClassReader:
    """Reads the classes that are about GPUs, uncached, and only for pods with such a resource."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def classes_behind(
        self, pod: Mapping[str, Any], gpu_classes: Sequence[str]
    ) -> dict[str, str]:
        """The class of each resource of the pod that hands out GPUs. Raises UnreadableError."""
        resources = set(extended_resources(pod))
        implicit = {f"{IMPLICIT_PREFIX}{name}": name for name in gpu_classes}
        found = {resource: implicit[resource] for resource in resources & implicit.keys()}
        given = {resource for resource in resources if _NATIVE not in resource}
        if given:
            names = await asyncio.gather(*(self._given_name(each) for each in gpu_classes))
            classes = dict(zip(names, gpu_classes, strict=True))
            found |= {resource: classes[resource] for resource in given & classes.keys()}
        return found

    async def _given_name(self, device_class: str) -> str:
        """Empty where there is no such class, or where it has only the name of every class."""
        try:
            raw = await self._api.get(f"{CLASSES}/{device_class}", seconds=READ_SECONDS)
        except NotFound:
            return ""
        except ApiError as error:
            raise UnreadableError(str(error)) from None
        return (raw.get("spec") or {}).get("extendedResourceName") or ""

"""A tmpfs for a data set; what is in it counts in the memory limit of the container."""

from collections.abc import Mapping
from typing import Any

from gpumem_operator import names
from gpumem_operator.api.pods import ContainerFacts
from gpumem_operator.api.policy import DatasetCache
from gpumem_operator.api.quantity import canonical, format_bytes
from gpumem_operator.injection.paths import normal


def volume(cache: DatasetCache) -> Mapping[str, Any]:
    return {
        "name": names.DATASET_VOLUME,
        "emptyDir": {
            "medium": "Memory",
            "sizeLimit": canonical(format_bytes(cache.size_limit_bytes)),
        },
    }


def mount(cache: DatasetCache) -> Mapping[str, Any]:
    return {"name": names.DATASET_VOLUME, "mountPath": cache.mount_path}


def obstacle(container: ContainerFacts, cache: DatasetCache) -> str | None:
    """Why the container does not get the cache, for people: data that it has there comes first."""
    path = normal(cache.mount_path)
    taken = any(normal(mount.get("mountPath") or "") == path for mount in container.mounts)
    return f"it mounts a volume of its own at {path}: no dataset cache there" if taken else None

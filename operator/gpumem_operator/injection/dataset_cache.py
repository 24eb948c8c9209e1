"""A tmpfs for a data set; what is in it counts in the memory limit of the container."""

from collections.abc import Mapping
from typing import Any

from gpumem_operator import names
from gpumem_operator.api.policy import DatasetCache
from gpumem_operator.api.quantity import format_bytes


def volume(cache: DatasetCache) -> Mapping[str, Any]:
    return {
        "name": names.DATASET_VOLUME,
        "emptyDir": {"medium": "Memory", "sizeLimit": format_bytes(cache.size_limit_bytes)},
    }


def mount(cache: DatasetCache) -> Mapping[str, Any]:
    return {"name": names.DATASET_VOLUME, "mountPath": cache.mount_path}

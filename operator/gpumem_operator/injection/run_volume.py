"""The volume through which the shim of each container and the sidecar meet: /run/gpumem."""

from collections.abc import Mapping
from typing import Any

from gpumem_operator import names
from gpumem_operator.api.quantity import canonical, format_bytes
from gpumem_operator.api.values import Values


def volume(values: Values) -> Mapping[str, Any]:
    return {
        "name": names.RUN_VOLUME,
        "emptyDir": {"sizeLimit": canonical(format_bytes(values.run_volume_size))},
    }


def mount() -> Mapping[str, Any]:
    return {"name": names.RUN_VOLUME, "mountPath": names.RUN_PATH}

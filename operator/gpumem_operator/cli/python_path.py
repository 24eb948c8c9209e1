"""What a pod's PYTHONPATH may hide: told to who asks about the pod, not to who creates it.

Admission can not see whether an image sets one, and most do not. Where a module is missing for
that, the shim says so in the program's own output.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.api.pods import KINDS, env_value

HINT: Final = (
    "PYTHONPATH is the shim's alone: if modules are missing, name the image's own in"
    f" injection.imagePythonPath or annotation {names.PYTHON_PATH_ANNOTATION}"
)


def containers_without_the_images(pod: Mapping[str, Any]) -> list[str]:
    """Names of the containers to which admission gave a PYTHONPATH where the author wrote none."""
    spec = pod.get("spec") or {}
    return [
        str(container.get("name"))
        for kind in KINDS
        for container in spec.get(kind) or ()
        if env_value(container, names.PYTHON_PATH_ORIGIN_ENV) is not None
    ]


def may_miss_modules(pod: Mapping[str, Any]) -> bool:
    """Whether one of these containers has failed: before that, there is nothing to explain."""
    failed = {name for name, status in _statuses(pod) if _has_failed(status)}
    return not failed.isdisjoint(containers_without_the_images(pod))


def _statuses(pod: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    status = pod.get("status") or {}
    for kind in ("containerStatuses", "initContainerStatuses"):
        for one in status.get(kind) or ():
            yield one.get("name"), one


def _has_failed(status: Mapping[str, Any]) -> bool:
    states = (status.get(key) or {} for key in ("state", "lastState"))
    return any((state.get("terminated") or {}).get("exitCode") for state in states)

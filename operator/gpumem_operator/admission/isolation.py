"""Containers that ask for no GPU get none, in namespaces that ask for it.

Images made from CUDA images set NVIDIA_VISIBLE_DEVICES to `all`, and where NVIDIA's runtime is the
default one, a container that asks for nothing then sees every GPU of its node. The chart does the
same by a native MutatingAdmissionPolicy where the API server has one; a test compares the two.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.admission.verdict import Operation
from gpumem_operator.api.pods import NO_DEVICES, ephemeral_names, is_gpu_resource

_VOID: Final = {"name": names.VISIBLE_DEVICES_ENV, "value": "void"}
_AT_CREATION: Final = ("containers", "initContainers")


def isolate_pod(pod: Mapping[str, Any]) -> Iterator[Operation]:
    """What keeps the containers of a new pod away from GPUs that they do not ask for."""
    spec = pod.get("spec") or {}
    for kind in _AT_CREATION:
        for index, raw in enumerate(spec.get(kind) or ()):
            if not _asks_for_gpu(raw):
                yield from _without_devices(raw, f"/spec/{kind}/{index}/env")


def isolate_ephemeral_containers(
    pod: Mapping[str, Any], old_pod: Mapping[str, Any]
) -> Iterator[Operation]:
    """The same for ephemeral containers that are being added; those that are there are fixed."""
    known = ephemeral_names(old_pod)
    for index, raw in enumerate((pod.get("spec") or {}).get("ephemeralContainers") or ()):
        if (raw.get("name") or "") not in known:
            yield from _without_devices(raw, f"/spec/ephemeralContainers/{index}/env")


def _without_devices(raw: Mapping[str, Any], path: str) -> Iterator[Operation]:
    entries = raw.get("env") or []
    present = [
        entry.get("value") for entry in entries if entry.get("name") == names.VISIBLE_DEVICES_ENV
    ]
    # Of a variable that is repeated the last one counts; one is easier to be sure of.
    if len(present) == 1 and present[0] in NO_DEVICES:
        return
    others = [entry for entry in entries if entry.get("name") != names.VISIBLE_DEVICES_ENV]
    yield {"op": "add", "path": path, "value": [_VOID, *others]}


def _asks_for_gpu(raw: Mapping[str, Any]) -> bool:
    """A request for no GPU at all (`nvidia.com/gpu: 0`) is none: no plugin then sets devices."""
    limits = (raw.get("resources") or {}).get("limits") or {}
    return any(is_gpu_resource(key) and str(amount) != "0" for key, amount in limits.items())

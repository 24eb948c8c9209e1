"""Which GPUs a container was given: from names of devices to UUIDs. Pure.

A device plugin is free in how it names devices. Seen: the UUID of a card or MIG instance (NVIDIA's
plugin), the same with a replica behind it, `GPU-...::3` (NVIDIA's, for shared cards), an index,
`nvidia0` and `nvidia0/vgpu3` (GKE's). What can not be told apart is counted and not guessed:
whoever reads the report must know that a container has GPUs which nobody could name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from gpumem_sidecar.picture import Assignment, Gpu

_GPU_RESOURCE = re.compile(r"nvidia\.com/(gpu|gpu\.shared|mig-.+)")
_GPU_DRIVER = "gpu.nvidia.com"
"""NVIDIA's driver for resource claims, which names devices in its own way."""
_UUID = re.compile(r"(?:GPU|MIG)-[A-Za-z0-9/-]+", re.ASCII)
_REPLICA = re.compile(r"::\d+$", re.ASCII)
_INDEX = re.compile(r"(?:nvidia)?(\d{1,4})(?:/vgpu\d+)?", re.ASCII)


class Device(NamedTuple):
    """One device of a container: the name of its resource or claim's driver, and its own."""

    resource: str
    id: str


class Given(NamedTuple):
    """What the kubelet gave to a container, GPUs or not."""

    pod_namespace: str
    pod_name: str
    container: str
    devices: tuple[Device, ...]


def assignments_of(given: Iterable[Given], gpus: Iterable[Gpu]) -> tuple[Assignment, ...]:
    """Those of containers with GPUs."""
    known = tuple(gpus)
    divided = {gpu.parent for gpu in known if gpu.parent is not None}
    # Of a card with MIG instances only these are given; its own name would tell nothing.
    whole = [gpu for gpu in known if gpu.uuid not in divided]
    uuids = {gpu.uuid for gpu in whole}
    by_index = {gpu.number: gpu.uuid for gpu in whole if gpu.parent is None}
    found = (_assignment(one, uuids, by_index, divided) for one in given)
    return tuple(one for one in found if one.gpus or one.unnamed)


def _assignment(
    given: Given, uuids: set[str], by_index: dict[int, str], divided: set[str]
) -> Assignment:
    gpus: set[str] = set()
    unnamed = 0
    for device in given.devices:
        is_gpu = _GPU_RESOURCE.fullmatch(device.resource) is not None
        name = _REPLICA.sub("", device.id)
        index = _INDEX.fullmatch(name) if is_gpu else None
        uuid = by_index.get(int(index[1])) if index else name
        if uuid in uuids or (uuid not in divided and _UUID.fullmatch(uuid or "")):
            # Also one that NVML does not list (any more): it is known by name, and by nothing else.
            gpus.add(uuid or "")
        elif is_gpu or device.resource == _GPU_DRIVER:
            unnamed += 1
    names = (given.pod_namespace, given.pod_name, given.container)
    return Assignment(*names, tuple(sorted(gpus)), unnamed)

"""The NVIDIA driver of this machine, and what of it belongs into a container, as CDI says it.

What NVIDIA's container toolkit finds by a list of names is found here by the folder that libcuda
was loaded from: every library of the driver's version in it, under each name that it has there.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pynvml

from devcluster.node.cdi import Edits, specification

MIB = 2**20
INSIDE = Path("/opt/nvidia-driver")
"""Where containers find the libraries. Not below /usr: workloads may have the machine's own there,
read-only, and nothing can be mounted into it."""
COMMON_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
_WANTED = re.compile(r"lib(cuda|nvidia-(ml|ptxjitcompiler|nvvm|gpucomp|opencl|cfg|allocator))")


@dataclass(frozen=True)
class Card:
    uuid: str
    name: str
    mib: int
    free_bytes: int
    node: str
    """Path of its device node."""


@dataclass(frozen=True)
class Hardware:
    version: str
    cards: tuple[Card, ...]
    libraries: Mapping[str, Path]
    """By the name under which the loader looks."""

    def cdi(self) -> str:
        """The specification for a node of this machine."""
        nodes = tuple(path for path in COMMON_NODES if Path(path).exists())
        mounts = tuple(
            (str(path), str(INSIDE / name), True) for name, path in self.libraries.items()
        )
        # A container's own search path ends where the machine's programs find their libraries.
        search = ":".join(filter(None, [str(INSIDE), os.environ.get("LD_LIBRARY_PATH", "")]))
        common = Edits((("LD_LIBRARY_PATH", search),), mounts=mounts, device_nodes=nodes)
        return specification(
            {card.uuid: Edits(device_nodes=(card.node,)) for card in self.cards}, common
        )


def find() -> Hardware:
    """Raises OSError or an NVMLError where there is no driver."""
    pynvml.nvmlInit()
    try:
        version = _text(pynvml.nvmlSystemGetDriverVersion())
        handles = [
            pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())
        ]
        return Hardware(version, tuple(_card(handle) for handle in handles), _libraries(version))
    finally:
        pynvml.nvmlShutdown()


def _card(handle: Any) -> Card:
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return Card(
        _text(pynvml.nvmlDeviceGetUUID(handle)),
        _text(pynvml.nvmlDeviceGetName(handle)),
        memory.total // MIB,
        memory.free,
        f"/dev/nvidia{pynvml.nvmlDeviceGetMinorNumber(handle)}",
    )


def _libraries(version: str) -> dict[str, Path]:
    folders = {_folder_of(name) for name in ("libcuda.so.1", "libnvidia-ml.so.1")}
    return {
        path.name: path.resolve()
        for folder in folders
        for path in sorted(folder.glob("lib*.so.*"))
        if _WANTED.match(path.name) and path.resolve().name.endswith(version)
    }


def _folder_of(name: str) -> Path:
    """Where the loader found a library."""
    ctypes.CDLL(name)
    stem = name.partition(".")[0]
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[-1]
        if path.startswith("/") and Path(path).name.startswith(f"{stem}.so"):
            return Path(path).parent
    raise OSError(f"{name} was loaded, and /proc/self/maps does not say from where")


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value

"""What the driver itself enforces for a container: the limits of its cgroup, read back.

Only from driver 615 on, with cgroup v2, on cards without MIG, and for root: everywhere else there
is nothing to read, which is no error. NVML wants the full path of the cgroup's folder, so whoever
asks needs the node's cgroup namespace and file system.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

from gpumem_sidecar.cgroups import container_folder
from gpumem_sidecar.processes import cgroup_of
from gpumem_sidecar.reading import Listed

Support = Literal["Supported", "Unsupported"]
UNLIMITED = 2**64 - 1
LARGEST = 2**63 - 1
"""Of the report; a limit above it is none."""


class DriverLimits:
    """Asks about the containers of listed processes. Not for several threads at once."""

    def __init__(self, cgroup_root: str, proc: str = "/proc") -> None:
        """`cgroup_root` is where cgroup v2 is mounted, for example /sys/fs/cgroup."""
        self._root = cgroup_root.rstrip("/")
        self._proc = proc
        self._unified = os.path.exists(f"{self._root}/cgroup.controllers")

    def support(self, nvml: Any, handle: Any) -> Support:
        """Whether limits can be had on this card, by asking for those of all cgroups together."""
        # With cgroup v1 the toolkit's hook refuses to start a container with a limit.
        known = self._unified and _limits(nvml, handle, self._root) is not None
        return "Supported" if known else "Unsupported"

    def on(self, nvml: Any, handle: Any, listed: tuple[Listed, ...]) -> tuple[Listed, ...]:
        """The processes, with the hard limit of their containers where there is one."""
        if not self._unified:
            return listed
        folders = {one.pid: self._folder(one.pid) for one in listed}
        hard: Mapping[str, int | None] = {
            folder: _hard_limit(nvml, handle, folder) for folder in set(folders.values()) if folder
        }
        return tuple(
            one._replace(driver_limit_bytes=hard.get(folders[one.pid] or "")) for one in listed
        )

    def _folder(self, pid: int) -> str | None:
        path = container_folder(cgroup_of(pid, self._proc) or "")
        return f"{self._root}{path}" if path else None


def _hard_limit(nvml: Any, handle: Any, folder: str) -> int | None:
    limits = _limits(nvml, handle, folder)
    if limits is None or not 0 <= limits.hardLimit <= LARGEST:
        return None
    hard: int = limits.hardLimit
    return hard


def _limits(nvml: Any, handle: Any, folder: str) -> Any:
    """None where they can not be read: an older driver, MIG, a cgroup that is gone, no root."""
    try:
        limits = nvml.c_nvmlGetMemoryLimits_v1_t(folder.encode())
        nvml.nvmlDeviceGetMemoryLimits_v1(handle, limits)
    except (nvml.NVMLError, AttributeError):
        # AttributeError: a pynvml that is older than the function.
        return None
    return limits

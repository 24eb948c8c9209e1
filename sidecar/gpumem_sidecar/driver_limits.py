"""What the driver itself enforces for a container: the limits of its cgroup, read back.

Only from driver 615 on, with cgroup v2, on cards without MIG, and for root: everywhere else there
is nothing to read, which is no error. NVML wants the full path of the cgroup's folder, so whoever
asks needs the node's tree of cgroups.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from gpumem_sidecar.cgroup_tree import CgroupTree
from gpumem_sidecar.reading import Listed

Support = Literal["Supported", "Unsupported"]
UNLIMITED = 2**64 - 1
LARGEST = 2**63 - 1
"""Of the report; a limit above it is none."""


class DriverLimits:
    """Asks about the containers of listed processes. Not for several threads at once."""

    def __init__(self, tree: CgroupTree) -> None:
        self._tree = tree

    def support(self, nvml: Any, handle: Any) -> Support:
        """Whether limits can be had on this card and read back, by asking for those of all cgroups
        together. Where they could not be read back, nobody would know that they hold."""
        # With cgroup v1 the toolkit's hook refuses to start a container with a limit.
        known = self._tree.is_the_nodes() and _limits(nvml, handle, self._tree.root) is not None
        return "Supported" if known else "Unsupported"

    def on(self, nvml: Any, handle: Any, listed: tuple[Listed, ...]) -> tuple[Listed, ...]:
        """The processes, with the hard limit of their containers where there is one."""
        folders = {one.pid: self._tree.container_of(one.pid) for one in listed}
        hard: Mapping[str, int | None] = {
            folder: _hard_limit(nvml, handle, folder) for folder in set(folders.values()) if folder
        }
        return tuple(
            one._replace(driver_limit_bytes=hard.get(folders[one.pid] or "")) for one in listed
        )


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

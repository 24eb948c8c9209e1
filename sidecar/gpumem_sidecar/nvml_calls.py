"""The calls of NVML whose form depends on the driver's version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gpumem_sidecar.driver_version import parse
from gpumem_sidecar.reading import Listed

UNAVAILABLE = 2**64 - 1
LARGER_STRUCTURE = ((535, 43, 2), (535, 98, 0))
"""From the first of these drivers to before the second, `_v3` of the process lists fills a larger
structure than every other driver, and pynvml would read wrong PIDs and bytes without any error
(release notes of nvidia-ml-py 12.535.108)."""


def memory_of(nvml: Any, handle: Any) -> tuple[int, int | None, int]:
    """Bytes: total, reserved, and used without reserved.

    A driver before 510.39.01 does not tell the reserve: None, and `used` may contain it. Raises
    what pynvml raises.
    """
    try:
        memory = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    except (nvml.NVMLError_FunctionNotFound, nvml.NVMLLibraryMismatchError):
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        return memory.total, None, memory.used
    return memory.total, memory.reserved, memory.used


def processes_of(nvml: Any, handle: Any, version: str) -> tuple[Listed, ...]:
    """Every process of a card or instance once, by PID. Raises what pynvml raises.

    A process that computes and draws is in two lists, and a client of MPS in the list of MPS and
    (seen with driver 580) in that of computing, each time with all its bytes.
    """
    found: dict[int, Listed] = {}
    for listed in _all_lists(nvml, handle, version):
        known = found.get(listed.pid, listed)
        amounts = [one for one in (known.bytes, listed.bytes) if one is not None]
        found[listed.pid] = Listed(listed.pid, max(amounts, default=None), known.mps or listed.mps)
    return tuple(found[pid] for pid in sorted(found))


def _all_lists(nvml: Any, handle: Any, version: str) -> Iterator[Listed]:
    for process in _list("Compute", nvml, handle, version):
        yield _listed(process, mps=False)
    for kind in ("Graphics", "MPSCompute"):
        try:
            processes = _list(kind, nvml, handle, version)
        except (nvml.NVMLError_FunctionNotFound, nvml.NVMLError_NotSupported):
            continue  # a card that only computes, or a driver that has no such list
        for process in processes:
            yield _listed(process, mps=kind == "MPSCompute")


def _list(kind: str, nvml: Any, handle: Any, version: str) -> list[Any]:
    name = f"nvmlDeviceGet{kind}RunningProcesses"
    second: Callable[[Any], list[Any]] = getattr(nvml, f"{name}_v2")
    first, after = LARGER_STRUCTURE
    if first <= parse(version) < after:
        return second(handle)
    try:
        third: Callable[[Any], list[Any]] = getattr(nvml, f"{name}_v3")
        return third(handle)
    except nvml.NVMLError_FunctionNotFound:
        return second(handle)


def _listed(process: Any, *, mps: bool) -> Listed:
    amount = process.usedGpuMemory
    # pynvml says None for an amount that is not available; not every version of it in every list.
    return Listed(process.pid, None if amount in (None, UNAVAILABLE) else amount, mps)

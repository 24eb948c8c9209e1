"""Runs in a process of its own: tells as JSON what the real pynvml sees of every card.

Errors are values here, under their NVML name: `{"error": "GPU_IS_LOST"}`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pynvml

ERRORS = {
    value: name.removeprefix("NVML_ERROR_")
    for name, value in vars(pynvml).items()
    if name.startswith("NVML_ERROR_")
}


def main() -> None:
    print(json.dumps(attempt(everything)))


def everything() -> dict[str, Any]:
    pynvml.nvmlInit()
    seen = {
        "driver": attempt(pynvml.nvmlSystemGetDriverVersion),
        "nvml": attempt(pynvml.nvmlSystemGetNVMLVersion),
        "cards": [attempt(card, index) for index in range(pynvml.nvmlDeviceGetCount())],
    }
    pynvml.nvmlShutdown()
    return seen


def card(index: int) -> dict[str, Any]:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    return about(handle) | {
        "mig_mode": attempt(pynvml.nvmlDeviceGetMigMode, handle),
        "instances": [
            attempt(instance, handle, i)
            for i in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle))
        ],
    }


def about(handle: Any) -> dict[str, Any]:
    return {
        "uuid": attempt(pynvml.nvmlDeviceGetUUID, handle),
        "name": attempt(pynvml.nvmlDeviceGetName, handle),
        "index": attempt(pynvml.nvmlDeviceGetIndex, handle),
        "minor": attempt(pynvml.nvmlDeviceGetMinorNumber, handle),
        "capability": attempt(pynvml.nvmlDeviceGetCudaComputeCapability, handle),
        "bus_id": attempt(lambda: pynvml.nvmlDeviceGetPciInfo(handle).busId),
        "memory": attempt(memory, handle, None),
        "memory_v2": attempt(memory, handle, pynvml.nvmlMemory_v2),
        "compute": attempt(processes, pynvml.nvmlDeviceGetComputeRunningProcesses_v3, handle),
        "graphics": attempt(processes, pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3, handle),
        "mps": attempt(processes, pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3, handle),
        "compute_v2": attempt(processes, pynvml.nvmlDeviceGetComputeRunningProcesses_v2, handle),
        "detail": attempt(details, handle),
    }


def instance(parent: Any, index: int) -> dict[str, Any]:
    handle = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, index)
    attributes = pynvml.nvmlDeviceGetAttributes(handle)
    above = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
    return about(handle) | {
        "gpu_instance": pynvml.nvmlDeviceGetGpuInstanceId(handle),
        "compute_instance": pynvml.nvmlDeviceGetComputeInstanceId(handle),
        "memory_mib": attributes.memorySizeMB,
        "slices": attributes.gpuInstanceSliceCount,
        "parent": pynvml.nvmlDeviceGetUUID(above),
        "by_uuid": pynvml.nvmlDeviceGetIndex(
            pynvml.nvmlDeviceGetHandleByUUID(pynvml.nvmlDeviceGetUUID(handle))
        ),
    }


def memory(handle: Any, version: int | None) -> dict[str, int]:
    info = pynvml.nvmlDeviceGetMemoryInfo(handle, version=version)
    return {name: getattr(info, name) for name, _ in info._fields_ if name not in ("version",)}


def processes(function: Callable[[Any], list[Any]], handle: Any) -> list[list[Any]]:
    return sorted(
        [found.pid, found.usedGpuMemory, found.gpuInstanceId, found.computeInstanceId]
        for found in function(handle)
    )


def details(handle: Any) -> list[list[Any]]:
    found = pynvml.nvmlDeviceGetRunningProcessDetailList(
        handle, pynvml.nvmlProcessDetailList_v1, pynvml.NVML_PROCESS_MODE_COMPUTE
    )
    return sorted([one.pid, one.usedGpuMemory] for one in found)


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        return {"error": ERRORS[error.value]}
    except TypeError as error:
        # nvmlDeviceGetRunningProcessDetailList of pynvml 13.615 cannot say "not available".
        return {"error": f"TypeError: {error}"}


if __name__ == "__main__":
    main()

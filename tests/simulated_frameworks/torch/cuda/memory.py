import os

import gpu

import torch


def get_allocator_backend():
    return os.environ.get("SIMULATED_TORCH_BACKEND", "native")


def set_per_process_memory_fraction(fraction, device=None):
    """Set memory fraction for a process."""
    torch.cuda._lazy_init()
    if device is None:
        device = torch.cuda.current_device()
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if fraction < 0 or fraction > 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    device = torch.cuda._utils._get_device_index(device)
    torch._C._cuda_setMemoryFraction(fraction, device)


def memory_reserved(device=None):
    if get_allocator_backend() == "pluggable":
        raise RuntimeError("CUDAPluggableAllocator does not yet support getDeviceStats")
    device = torch.cuda._current if device is None else device
    return torch._C.reserved.get(device, 0)


def empty_cache():
    for device, cached in torch._C.cached.items():
        gpu.take(device, -cached)
        torch._C.reserved[device] -= cached
        torch._C.cached[device] = 0

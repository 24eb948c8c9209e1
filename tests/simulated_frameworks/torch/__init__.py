"""A simulated torch: what the shim calls of the real one, with the real one's rules.

tests/frameworks checks the real releases for the same names and signatures.
"""

import os

import gpu

__version__ = os.environ.get("SIMULATED_TORCH", "2.15.0+cu130")


class version:
    cuda = None if "SIMULATED_TORCH_WITHOUT_CUDA" in os.environ else "13.0"
    hip = None


class OutOfMemoryError(RuntimeError):
    pass


class _C:
    fractions, reserved, cached, observers = {}, {}, {}, []
    caching = None

    @staticmethod
    def _cuda_hasPrimaryContext(device):
        return gpu.has_context(device)

    @staticmethod
    def _cuda_getMemoryFraction(device):
        return _C.fractions.get(device, 1.0)

    @staticmethod
    def _cuda_setMemoryFraction(fraction, device):
        # The real one makes the GPU current, which creates its context.
        cuda._current = device
        gpu.context(device)
        _C.fractions[device] = fraction

    @staticmethod
    def _cuda_attach_out_of_memory_observer(observer):
        assert gpu.started
        _C.observers.append(observer)


def allocate(mib, device=None):
    """A tensor of so many MiB that is dropped at once: the allocator keeps its memory."""
    cuda._lazy_init()
    device = cuda._current if device is None else device
    if cuda._in_fork():
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
    gpu.context(device)
    size = mib * gpu.MIB - _C.cached.get(device, 0)
    if size <= 0:
        return
    allowed = int(_C.fractions.get(device, 1.0) * gpu.total(device))
    if _C.caching is None:
        # It is looked at once.
        _C.caching = "PYTORCH_NO_CUDA_MEMORY_CACHING" not in os.environ
    caching = _C.caching
    over = caching and _C.reserved.get(device, 0) + size > allowed
    if over or not gpu.take(device, size):
        for observer in _C.observers:
            observer(device, size, allowed, gpu.total(device) - gpu.held(device))
        raise OutOfMemoryError(f"simulated: tried {mib} MiB, {allowed >> 20} MiB allowed")
    if caching:
        _C.reserved[device] = _C.reserved.get(device, 0) + size
        _C.cached[device] = _C.cached.get(device, 0) + size


from torch import cuda  # noqa: E402

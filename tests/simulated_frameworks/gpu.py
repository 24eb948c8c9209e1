"""What the simulated frameworks stand on: a context and an allocator per GPU, seen by NVML.

SIMULATED_CONTEXT_MIB is what a context holds; `beside(mib)` takes memory as NCCL or cuBLAS would.
"""

import ctypes
import os

MIB = 2**20
_cuda = ctypes.CDLL("libcuda.so.1")
_nvml = ctypes.CDLL("libnvidia-ml.so.1")
_nvml.gpumem_simulated_hold.restype = ctypes.c_void_p
_nvml.gpumem_simulated_hold.argtypes = [ctypes.c_char_p, ctypes.c_char_p, *2 * [ctypes.c_uint64]]
_nvml.gpumem_simulated_resize.argtypes = [ctypes.c_void_p, *2 * [ctypes.c_uint64]]
started = False
_held = {}
_amounts = {}


def start():
    """cuInit. RuntimeError where there is no GPU."""
    global started
    if not started and _cuda.cuInit(0):
        raise RuntimeError("simulated: no CUDA GPUs are available")
    started = True


def count():
    """Of GPUs; starts nothing."""
    return int(os.environ.get("SIMULATED_GPUS", "1"))


def total(ordinal):
    bytes_ = ctypes.c_size_t()
    if _cuda.cuDeviceTotalMem_v2(ctypes.byref(bytes_), ordinal):
        return int(os.environ["SIMULATED_TOTAL_BYTES"])
    return bytes_.value


def _name(ordinal):
    """Of a GPU as the driver knows it: containers count those that they were given."""
    given = [name for name in os.environ.get("NVIDIA_VISIBLE_DEVICES", "").split(",") if name]
    return given[ordinal] if given and given[0].startswith("GPU-") else str(ordinal)


def has_context(ordinal):
    return ordinal in _held


def context(ordinal):
    """Make one, if there is none."""
    if ordinal not in _held:
        mib = int(os.environ.get("SIMULATED_CONTEXT_MIB", "518"))
        amount = mib * MIB
        held = _nvml.gpumem_simulated_hold(_name(ordinal).encode(), b"compute", amount, 0)
        if not held:
            raise RuntimeError("simulated: CUDA out of memory for a context")
        _held[ordinal], _amounts[ordinal] = held, amount


def take(ordinal, amount):
    """More memory, or less; False where the card has not enough."""
    context(ordinal)
    if not _nvml.gpumem_simulated_resize(_held[ordinal], _amounts[ordinal] + amount, 0):
        return False
    _amounts[ordinal] += amount
    return True


def beside(mib, ordinal=0):
    """Memory in no framework's allocator."""
    assert take(ordinal, mib * MIB)


def held(ordinal=0):
    return _amounts.get(ordinal, 0)

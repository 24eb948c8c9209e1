"""Takes 64 MiB of card 0 through the real libcuda: the holder of questions.py on hardware."""

from __future__ import annotations

import ctypes
import os
import sys

cuda = ctypes.CDLL("libcuda.so.1")


def check(code: int) -> None:
    if code:
        raise SystemExit(f"CUDA error {code}")


device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
check(cuda.cuInit(0))
check(cuda.cuDeviceGet(ctypes.byref(device), 0))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
check(cuda.cuCtxSetCurrent(context))
check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(64 << 20)))
print("holding as pid", os.getpid(), flush=True)
sys.stdin.readline()

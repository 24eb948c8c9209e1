"""What programs of the scenarios do with a simulated GPU, by simulated frameworks.

The names and what they mean are those of the real one, beside this folder.
"""

import os
import time

import gpu

MIB = 2**20


def take_all(framework):
    """Take memory until the framework refuses; returns MiB of tensors, found by halving."""
    module = __import__(framework)
    time.sleep(2.5)
    fits, step = 0, 65536
    while step >= 16:
        try:
            module.allocate(fits + step)
            fits += step
        except module.OutOfMemoryError:
            step //= 2
    return fits


def take(mib):
    import torch

    torch.allocate(mib)


def drop():
    """The simulated torch holds no tensors: its allocator alone does."""


def raw(mib):
    gpu.start()
    gpu.context(0)
    if not gpu.take(0, mib * MIB):
        raise RuntimeError("simulated: out of memory")


def checksum():
    import torch

    torch.allocate(1024)
    return sum(number * number for number in range(10000))


def trainer():
    import torch

    torch.allocate(1024)

    def run(steps):
        start = time.perf_counter()
        for _ in range(steps):
            sum(number * number for number in range(1000))
        return (time.perf_counter() - start) / steps

    return run


def stay(path="/tmp/end"):
    while not os.path.exists(path):
        time.sleep(0.05)

"""What programs of the scenarios do with a simulated GPU, by simulated frameworks.

The names and what they mean are those of the real one, beside this folder.
"""

# mypy: disable-error-code="import-not-found,no-any-return"

import os
import subprocess
import time
from collections.abc import Callable

import gpu

MIB = 2**20


def take_all(framework: str) -> int:
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


def take(mib: int) -> None:
    import torch

    torch.allocate(mib)


def drop() -> None:
    """The simulated torch holds no tensors: its allocator alone does."""


def raw(mib: int) -> None:
    gpu.start()
    gpu.context(0)
    if not gpu.take(0, mib * MIB):
        raise RuntimeError("simulated: out of memory")


def take_as_mps_client() -> int:
    """A program in C that the simulated driver lists as a client; it takes the most it may."""
    limit = os.environ["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"]
    mib = int(limit.partition(",")[0].partition("=")[2].rstrip("M"))
    card = os.environ["NVIDIA_VISIBLE_DEVICES"]
    command = ["simulated-alloc", "--gpu", card, "--mib", str(mib), "--kind", "mps"]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    client.stdout.readline()
    return mib


def checksum() -> float:
    import torch

    torch.allocate(1024)
    return sum(number * number for number in range(10000))


def trainer() -> Callable[[int], float]:
    import torch

    torch.allocate(1024)

    def run(steps: int) -> float:
        start = time.perf_counter()
        for _ in range(steps):
            sum(number * number for number in range(1000))
        return (time.perf_counter() - start) / steps

    return run


def stay(path: str = "/tmp/end") -> None:
    while not os.path.exists(path):
        time.sleep(0.05)

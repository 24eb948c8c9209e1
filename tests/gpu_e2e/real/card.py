"""What programs of the scenarios do with a real GPU. The simulated one is beside this folder.

Runs in the workload's own Python, so everything but `raw` needs the framework alone.
"""

# mypy: disable-error-code="import-not-found,no-any-return"

import ctypes
import os
import time
from collections.abc import Callable
from typing import Any

MIB = 2**20
STEP = 64 * MIB
OUT_OF_MEMORY = 2
SETTLE_SECONDS = 2.5
"""The shim has measured the context and the libraries' workspaces by then."""
_held: list[Any] = []


def take_all(framework: str) -> int:
    """Take memory until the framework refuses; returns MiB of tensors."""
    return {"torch": _torch, "jax": _jax, "cupy": _cupy}[framework]()


def _torch() -> int:
    import torch

    one = torch.ones(2048, 2048, device="cuda")
    (one @ one).sum().item()
    time.sleep(SETTLE_SECONDS)
    taken = []
    try:
        while True:
            taken.append(torch.empty(STEP, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        _held.extend(taken)
    return len(taken) * STEP // MIB


def _cupy() -> int:
    import cupy

    one = cupy.ones((1024, 1024), dtype=cupy.float32)
    float((one @ one).sum())
    time.sleep(SETTLE_SECONDS)
    taken = []
    try:
        while True:
            taken.append(cupy.empty(STEP, dtype=cupy.uint8))
    except cupy.cuda.memory.OutOfMemoryError:
        _held.extend(taken)
    return len(taken) * STEP // MIB


def _jax() -> int:
    import jax
    import jax.numpy as jnp

    two = jnp.ones((2048, 2048))
    float(jax.jit(lambda x: (x @ x).sum())(two))
    # Up to what the backend says that it may take: it waits ten seconds before it fails.
    stats, taken = jax.devices()[0].memory_stats, []
    try:
        while stats()["bytes_in_use"] + STEP <= stats()["bytes_limit"]:
            taken.append(jnp.zeros(STEP, jnp.uint8).block_until_ready())
    except jax.errors.JaxRuntimeError:
        pass  # the last part of it is in pieces
    _held.extend(taken)
    return len(taken) * STEP // MIB


def take(mib: int) -> None:
    """Tensors of torch."""
    import torch

    _held.append(torch.empty(mib * MIB, dtype=torch.uint8, device="cuda"))
    torch.cuda.synchronize()


def drop() -> None:
    """Let go of all tensors; the framework keeps their memory for later ones."""
    _held.clear()


def raw(mib: int) -> None:
    """Memory by CUDA's driver interface, in no framework's allocator, until the process ends."""
    code = _allocate(_driver(), mib * MIB)
    if code:
        raise RuntimeError(f"CUDA error {code}")


def take_as_mps_client() -> int:
    """Memory by CUDA's driver interface until it is refused; returns MiB."""
    cuda, taken = _driver(), 0
    while not (code := _allocate(cuda, STEP)):
        taken += STEP
    if code != OUT_OF_MEMORY:
        raise RuntimeError(f"CUDA error {code}")
    return taken // MIB


def _driver() -> ctypes.CDLL:
    """With a context on the first card."""
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    for code in (
        cuda.cuInit(0),
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
        cuda.cuCtxSetCurrent(context),
    ):
        if code:
            raise RuntimeError(f"CUDA error {code}")
    return cuda


def _allocate(cuda: ctypes.CDLL, amount: int) -> int:
    memory = ctypes.c_uint64()
    return int(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(amount)))


def checksum() -> float:
    """The result of a short computation, the same each time on one card."""
    import torch

    torch.manual_seed(7)
    x = torch.randn(1024, 1024, device="cuda")
    for _ in range(20):
        x = torch.tanh(x @ x.T / 32)
    return x.double().sum().item()


def trainer() -> Callable[[int], float]:
    """A function that runs so many training steps and returns the seconds that each took."""
    import torch

    layers = [torch.nn.Linear(1024, 1024) for _ in range(8)]
    model = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x = torch.randn(256, 1024, device="cuda")

    def run(steps: int) -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / steps

    return run


def stay(path: str = "/tmp/end") -> None:
    """Until somebody makes a file."""
    while not os.path.exists(path):
        time.sleep(0.05)

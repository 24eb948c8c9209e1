"""What the shim promises about CuPy, tried on a GPU."""

from collections.abc import Iterator

from bench.real_gpu_runs import GIB, MIB, Check, Container, told, within

TAKE = """
import json, time, cupy
def take(step=64 << 20):
    held = []
    try:
        while True: held.append(cupy.empty(step, dtype=cupy.uint8))
    except cupy.cuda.memory.OutOfMemoryError: return held
one = cupy.ones((1024, 1024), dtype=cupy.float32); float((one @ one).sum())
pool = cupy.get_default_memory_pool()
"""
FINISH = "time.sleep(2.5)\nprint(json.dumps(len(held)))\n"


def _limits(container: Container) -> Iterator[Check]:
    for how in ("", "pool.set_limit(0)", "pool.set_limit(fraction=1.0)", "pool.set_limit(2**40)"):
        done = container.run(TAKE + how + "\nheld = take()\n" + FINISH)
        yield from within(f"cupy, {how or 'the limit'}", done, container.limit)


def _asynchronous(container: Container) -> Iterator[Check]:
    done = container.run(
        TAKE
        + "pool.free_all_blocks()\n"
        + "cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)\n"
        + "cupy.empty(1); time.sleep(3)\nheld = take()\n"
        + FINISH
    )
    yield from within("cupy, MemoryAsyncPool", done, container.limit)


def _no_pool(container: Container) -> Iterator[Check]:
    done = container.run(
        TAKE + "cupy.cuda.set_allocator(None)\nheld = [cupy.empty(12 << 30, 'u1')]\n" + FINISH
    )
    seen = done.framework("cupy")["notCapped"]
    yield told("cupy, no pool: reported", "AllocatorHasNoCap", seen)
    [gpu] = done.states[0]["gpus"]
    good = gpu["bytes"] > container.limit
    yield Check("  what it holds is told", "> 8 GiB", f"{gpu['bytes'] // MIB} MiB", good)


def _beside_torch(container: Container) -> Iterator[Check]:
    done = container.run(
        TAKE
        + "import torch\n"
        + "def take_torch():\n"
        + "    held = []\n"
        + "    try:\n"
        + "        while True: held.append(torch.empty(16 << 20, device='cuda'))\n"
        + "    except torch.OutOfMemoryError: return held\n"
        + "held = []\n"
        + "for _ in range(6): held.append((take(), take_torch())); time.sleep(1.2)\n"
        + FINISH
    )
    yield from within("cupy and torch in one process", done, container.limit)
    caps = [cap["capBytes"] for one in done.states[0]["frameworks"] for cap in one["caps"]]
    good = len(caps) == 2 and sum(caps) <= container.limit - GIB
    yield Check("  their caps together", "<= limit - reserve", f"{sum(caps) // MIB} MiB", good)


PARTS = (_limits, _asynchronous, _no_pool, _beside_torch)

"""What the shim promises about JAX, tried on a GPU: one process each, about a minute in all."""

from collections.abc import Iterator
from dataclasses import replace

from bench.real_gpu_runs import (
    GIB,
    MIB,
    RESERVE,
    Check,
    Container,
    Done,
    told,
    two_announced,
    within,
)

TAKE = """
import json, os, time
import jax, jax.numpy as jnp
STEP = 64 << 20
def one(): return jnp.zeros(STEP, jnp.uint8).block_until_ready()
def take():
    # Up to what the backend says that it may take: it waits ten seconds before it fails.
    stats, held = jax.devices()[0].memory_stats, []
    while stats()["bytes_in_use"] + STEP <= stats()["bytes_limit"]:
        try: held.append(one())
        except Exception: break
    return held
def take_until_it_fails():
    held = take()
    try:
        while True: held.append(one())
    except Exception as error:
        assert "RESOURCE_EXHAUSTED" in str(error), error
    return held
"""
MULTIPLY = "two = jnp.ones((2048, 2048)); float(jax.jit(lambda x: (x @ x).sum())(two))\n"
RUN = TAKE + MULTIPLY + "held = take()\n"
FINISH = "time.sleep(1.2)\nprint(json.dumps(len(held)))\n"
GROWING = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
PREALLOCATING = {"XLA_PYTHON_CLIENT_PREALLOCATE": "true"}
LOWER_FRACTION = 0.02


def _limits(container: Container) -> Iterator[Check]:
    until_it_fails = TAKE + MULTIPLY + "held = take_until_it_fails()\n"
    for what, gib, variables, program in (
        ("growing, until it fails", 8, GROWING, until_it_fails),
        ("growing", 20, GROWING, RUN),
        ("preallocating", 8, PREALLOCATING, RUN),
    ):
        sized = replace(container, limit=gib * GIB, variables=variables)
        done = sized.run(program + FINISH)
        yield from within(f"jax, {what}, {gib} GiB", done, gib * GIB)
        yield from _caps(done, gib * GIB)


def _caps(done: Done, limit: int) -> Iterator[Check]:
    told_of = done.framework("jax")
    caps = sum(cap["capBytes"] for cap in told_of["caps"])
    good = bool(caps) and caps + RESERVE <= limit
    yield Check("  cap + reserve", "<= the limit", f"{(caps + RESERVE) // MIB} MiB", good)
    yield told("  can give back", "Unsupported", told_of["reclaim"])
    [gpu] = done.states[0]["gpus"]
    outside = gpu["outsideBytes"]
    seen = f"{gpu['bytes'] // MIB} MiB, {'unknown' if outside is None else outside // MIB} MiB"
    good = outside is not None and abs(gpu["bytes"] - done.peak) <= done.peak / 50
    yield Check(
        "  what the process itself measured, and beside the allocator",
        "within 2 % of NVML's peak, and known",
        seen,
        good,
    )


def _own_fraction(container: Container) -> Iterator[Check]:
    newer, older = "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"
    higher = replace(container, variables={**GROWING, newer: "0.9"})
    yield from within(f"jax, {newer}=0.9", higher.run(RUN + FINISH), container.limit)
    late = f"import os; os.environ['{older}'] = '{LOWER_FRACTION}'\n"
    done = replace(container, variables=GROWING).run(late + RUN + FINISH)
    seen = f"{done.peak / MIB:.0f} MiB"
    good = done.code == 0 and done.peak < 4.5 * GIB
    yield Check(f"jax, a lower fraction of the program ({LOWER_FRACTION})", "stays", seen, good)


def _allocators(container: Container) -> Iterator[Check]:
    for allocator in ("platform", "cuda_async"):
        chosen = replace(container, variables={"XLA_PYTHON_CLIENT_ALLOCATOR": allocator})
        done = chosen.run(TAKE + MULTIPLY + "held = [jnp.zeros(64 << 20, jnp.uint8)]\n" + FINISH)
        seen = done.framework("jax")["notCapped"]
        yield told(f"jax, allocator {allocator}: reported", "AllocatorHasNoCap", seen)


def _processes(container: Container) -> Iterator[Check]:
    # Each waits a while, so that both hold all that they get at once.
    program = RUN + "time.sleep(6)\n" + FINISH
    yield from two_announced("jax", program, replace(container, variables=GROWING))


def _beside_torch(container: Container) -> Iterator[Check]:
    done = replace(container, variables=GROWING).run(
        "try:\n    import torch\nexcept ImportError: torch = None\n"
        + RUN
        + "if torch is not None:\n"
        + "    rest = []\n"
        + "    try:\n"
        + "        while True: rest.append(torch.empty(16 << 20, device='cuda'))\n"
        + "    except torch.OutOfMemoryError: pass\n"
        + FINISH
    )
    what = "jax and torch in one process" if done.framework("torch") else "jax (there is no torch)"
    yield from within(what, done, container.limit)


PARTS = (_limits, _own_fraction, _allocators, _processes, _beside_torch)

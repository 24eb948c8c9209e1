"""A container with the shim, simulated frameworks and simulated cards, down to libcuda and NVML."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devcluster.simulated_driver import Driver, create_state, environment, numbered_device
from devcluster.simulated_driver.build import find_compiler
from shimmed import Shimmed

FRAMEWORKS = Path(__file__).parent / "simulated_frameworks"
MIB = 2**20
GIB = 2**30
PRELUDE = """
import gpu, json, os, sys, time
from gpumem_shim import process, state

def refresh():
    process.own.refresh()

def told():
    refresh()
    return json.loads(json.dumps(state.describe(process.own.told)))
"""


@functools.cache
def libcuda_folder() -> Path:
    """With a simulated libcuda.so.1."""
    folder = Path(tempfile.mkdtemp(prefix="simulated-cuda-"))
    options = ["-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror"]
    target = folder / "libcuda.so.1"
    source = FRAMEWORKS / "cuda.c"
    subprocess.run([find_compiler(), *options, "-o", target, source, "-ldl"], check=True)
    return folder


def simulated_cards(folder: Path, gpus: int) -> dict[str, str]:
    """Variables of a process that sees so many simulated cards, by NVML and by CUDA."""
    state = create_state(folder / "driver", Driver(tuple(numbered_device(n) for n in range(gpus))))
    driver = environment(state)
    return {
        **{name: driver[name] for name in driver if name.startswith("SIMULATED_")},
        "LD_LIBRARY_PATH": f"{libcuda_folder()}:{driver['LD_LIBRARY_PATH']}",
        "SIMULATED_GPUS": str(gpus),
    }


class GpuContainer(Shimmed):
    """`run` executes a program with `told()`, `refresh()` and `gpu` at hand; it prints JSON."""

    def __init__(
        self,
        folder: Path,
        python: str = sys.executable,
        *,
        gpus: int = 1,
        limit: int | None = 8 * GIB,
    ) -> None:
        super().__init__(folder, python)
        self.gpus = gpus
        self.environment = {
            **simulated_cards(folder, gpus),
            "GPUMEM_LIMIT_BYTES": "" if limit is None else str(limit),
            "GPUMEM_CONTEXT_RESERVE_BYTES": str(GIB),
        }

    def variables(self, path: str) -> Mapping[str, str]:
        return super().variables(f"{path}:{FRAMEWORKS}")

    def run(self, program: str) -> Any:
        """What the program printed, one JSON value a line; only one is returned as it is."""
        result = self.start(PRELUDE + program)
        assert (result.returncode, result.stderr) == (0, ""), result.stderr
        values = [json.loads(line) for line in result.stdout.splitlines()]
        return values[0] if len(values) == 1 else values


def most(container: GpuContainer, framework: str, before: str = "") -> int:
    """MiB that a program can take by one simulated framework, found by halving."""
    found: int = container.run(
        f"import {framework}\n{before}\n"
        "fits, step = 0, 65536\n"
        "while step >= 16:\n"
        "    try:\n"
        f"        {framework}.allocate(fits + step)\n"
        "        fits += step\n"
        f"    except {framework}.OutOfMemoryError:\n"
        "        step //= 2\n"
        "print(fits)\n"
    )
    return found


def told_of(told: Any, framework: str) -> Any:
    """What a state says of one framework."""
    return next(one for one in told["frameworks"] if one["name"] == framework)

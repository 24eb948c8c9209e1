"""A simulated program that the product's own shim caps: a real Python with a simulated torch.

It takes memory of the simulated card through the framework's allocator, so the shim puts a cap on
that and tells about it in the pod's run folder, as it does in a container.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devcluster.failure import ClusterError
from devcluster.sandbox import new_namespace
from devcluster.simulated_driver import environment
from devcluster.simulated_driver.build import find_compiler

ROOT = Path(__file__).parent.parent
FRAMEWORKS = ROOT / "tests" / "simulated_frameworks"
START_SECONDS = 30.0
_PROGRAM = """
import os, sys, torch
held = 0
def hold(mib):
    global held
    try:
        torch.allocate(mib)
        held = mib
    except torch.OutOfMemoryError as error:
        print("out of memory:", error, file=sys.stderr)
hold(int(sys.argv[1]))
print(os.getpid(), flush=True)
for line in sys.stdin:
    hold(int(line))
    print(held, flush=True)
"""


class Training:
    """Runs from construction to `kill`, as the first process of a PID namespace of its own."""

    def __init__(
        self,
        container: Mapping[str, Any],
        mib: int,
        *,
        driver: Path,
        folder: Path,
        capped: bool = True,
    ) -> None:
        """`container` is of the stored pod; in `folder` are its volumes `run` and `shim`."""
        shim = folder / "shim"
        sources = {"PYTHONPATH": str(ROOT / "sidecar")}
        subprocess.run(
            [sys.executable, "-m", "gpumem_shim", "install", str(shim)],
            env=os.environ | sources,
            check=True,
            capture_output=True,
        )
        given = {one["name"]: one["value"] for one in container.get("env") or () if "value" in one}
        if not capped:
            given.pop("GPUMEM_LIMIT_BYTES", None)
        base = environment(driver)
        here = {
            "PYTHONPATH": f"{shim}:{FRAMEWORKS}",
            "GPUMEM_RUN_PATH": str(folder / "run"),
            "LD_LIBRARY_PATH": f"{_libcuda(folder / 'cuda')}:{base['LD_LIBRARY_PATH']}",
        }
        self._process = subprocess.Popen(
            [*new_namespace(), sys.executable, "-B", "-c", _PROGRAM, str(mib)],
            env=base | given | here,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid_inside = int(self._answer())

    @property
    def pid(self) -> int:
        """The PID of `unshare`, whose only child is the program."""
        return self._process.pid

    def set(self, mib: int) -> None:
        """Have it hold so much, as far as its cap lets it."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{mib}\n")
        self._process.stdin.flush()
        self._answer()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], START_SECONDS)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self.kill()
            raise ClusterError(f"the simulated training was silent for {START_SECONDS:.0f} s")
        return line.rstrip()


def _libcuda(folder: Path) -> Path:
    """The folder, with a simulated libcuda.so.1, which stands on the simulated driver's NVML."""
    folder.mkdir()
    options = ["-O2", "-fPIC", "-shared"]
    target, source = folder / "libcuda.so.1", FRAMEWORKS / "cuda.c"
    command = [find_compiler(), *options, "-o", str(target), str(source), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return folder

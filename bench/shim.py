"""`python -m bench.shim`: what the shim adds to the start of a Python process.

Interpreters start with it and without it by turns. The least processor time of many starts counts:
what else the machine does only ever adds to it. A module `torch` of one line stands for a
framework, so that what the shim does at its import is measured and not the framework.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.costs import Cost, main, table, write

SIDECAR = Path(__file__).parents[1] / "sidecar"
OLDEST, NEWEST = 8, 15
STARTS = 40
TARGETS = {"without a framework": ("pass", 2.0), "with one": ("import torch", 30.0)}
"""What the program does, and the most milliseconds that the shim may add."""


def measure(*, quick: bool = False) -> list[Cost]:
    """Milliseconds that the shim adds, for each python3.X that PATH has."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _install(folder / "shim")
        (folder / "run").mkdir()
        library = folder / "library"
        library.mkdir()
        (library / "torch.py").write_text('__version__ = "2.9.0"\n')
        return [
            Cost(
                f"Python {version}, {what}",
                _added(python, program, folder, 3 if quick else STARTS),
                "ms",
                target,
            )
            for version, python in interpreters().items()
            for what, (program, target) in TARGETS.items()
        ]


def interpreters() -> dict[str, str]:
    """Every python3.X on PATH that starts, by version, and this one."""
    names = [shutil.which(f"python3.{minor}") for minor in range(OLDEST, NEWEST + 1)]
    found: dict[str, str] = {}
    for python in (*filter(None, names), sys.executable):
        version = "import sys; print('%d.%d' % sys.version_info[:2])"
        asked = subprocess.run([python, "-c", version], capture_output=True, text=True)
        # The starters of version managers are there for versions that are not.
        if asked.returncode == 0:
            found[asked.stdout.strip()] = _itself(python)
    return found


def _itself(python: str) -> str:
    """The interpreter and not what starts it."""
    asked = [python, "-c", "import sys; print(sys.executable)"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def _install(folder: Path) -> None:
    """As the init container does."""
    command = [sys.executable, "-m", "gpumem_shim", "install", str(folder)]
    variables = os.environ | {"PYTHONPATH": str(SIDECAR)}
    subprocess.run(command, env=variables, check=True, stdout=subprocess.DEVNULL)


def _added(python: str, program: str, folder: Path, starts: int) -> float:
    least = {True: float("inf"), False: float("inf")}
    for _ in range(starts):
        for shimmed in least:
            paths = [folder / "shim", folder / "library"] if shimmed else [folder / "library"]
            variables = {
                "PYTHONPATH": ":".join(map(str, paths)),
                # As in a pod, where the volume is read-only.
                "PYTHONDONTWRITEBYTECODE": "1",
                "GPUMEM_CONTAINER": "main",
                "GPUMEM_RUN_PATH": str(folder / "run"),
                "GPUMEM_LIMIT_BYTES": str(8 * 2**30),
            }
            spent = _cpu_milliseconds([python, "-c", program], variables)
            least[shimmed] = min(least[shimmed], spent)
    return least[True] - least[False]


def _cpu_milliseconds(command: list[str], variables: Mapping[str, str]) -> float:
    """User and system time of a process from its start to its end. Raises RuntimeError."""
    pid = os.posix_spawn(command[0], command, variables)
    _, status, used = os.wait4(pid, 0)
    if status != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return (used.ru_utime + used.ru_stime) * 1000


def run(*, quick: bool, folder: Path) -> str:
    """Measure; returns the table and where the JSON is."""
    costs = measure(quick=quick)
    return f"{table('CPU that the shim adds to a start', costs)}\n\n{write(costs, folder, 'shim')}"


if __name__ == "__main__":
    sys.exit(main("shim", __doc__, run))

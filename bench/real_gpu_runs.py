"""Programs as a GPU container would run them, and what NVML sees of them every 10 ms."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pynvml

ROOT = Path(__file__).parents[1]
MIB = 2**20
GIB = 2**30
RESERVE = GIB
SAMPLE_SECONDS = 0.01
LONGEST_SECONDS = 180


class Check(NamedTuple):
    """One row."""

    what: str
    expected: str
    seen: str
    good: bool


class Peak:
    """The most that all processes beside the baseline held together on GPU 0, by NVML."""

    def __init__(self) -> None:
        self._handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        self._others = set(self.now())
        self.bytes = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def now(self) -> dict[int, int]:
        """Bytes by PID."""
        listed = [
            *pynvml.nvmlDeviceGetComputeRunningProcesses(self._handle),
            *pynvml.nvmlDeviceGetMPSComputeRunningProcesses(self._handle),
        ]
        return {one.pid: one.usedGpuMemory or 0 for one in listed}

    def used_of_card(self) -> int:
        return int(pynvml.nvmlDeviceGetMemoryInfo(self._handle).used)

    def __enter__(self) -> "Peak":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(SAMPLE_SECONDS):
            held = sum(amount for pid, amount in self.now().items() if pid not in self._others)
            self.bytes = max(self.bytes, held)


@dataclass
class Done:
    """One program that ended: what it printed as JSON, what NVML saw, what the shims told."""

    code: int
    values: list[Any]
    peak: int
    states: list[Any]
    error: str

    @property
    def value(self) -> Any:
        """The last one; SystemExit with the program's own words where there is none."""
        if self.code or not self.values:
            raise SystemExit(f"the program ended with {self.code}:\n{self.error[-3000:]}")
        return self.values[-1]

    def framework(self, name: str) -> Any:
        """What the first shim told about one; {} where none did."""
        return next(iter(self.of(name)), {})

    def of(self, name: str) -> list[Any]:
        """What each shim told about one framework."""
        return [one for state in self.states for one in state["frameworks"] if one["name"] == name]


@dataclass
class Container:
    """What admission would have set, for programs of this machine's Python."""

    folder: Path
    python: str = sys.executable
    limit: int = 8 * GIB
    variables: Mapping[str, str] = field(default_factory=dict)
    path: str = ""
    """What else is on PYTHONPATH, before what is on this program's."""

    def environment(self, *, shim: bool = True) -> dict[str, str]:
        paths = [str(self.folder / "shim")] * shim
        paths += [self.path, os.environ.get("PYTHONPATH", "")]
        return {
            **os.environ,
            "PYTHONPATH": ":".join(filter(None, paths)),
            "GPUMEM_CONTAINER": "main",
            "GPUMEM_RUN_PATH": str(self.folder / "run"),
            "GPUMEM_LIMIT_BYTES": str(self.limit),
            "GPUMEM_CONTEXT_RESERVE_BYTES": str(RESERVE),
            "CUPY_GPU_MEMORY_LIMIT": str(self.limit - RESERVE),
            **self.variables,
        }

    def start(self, program: str, *flags: str, shim: bool = True) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.python, *flags, "-c", program],
            env=self.environment(shim=shim),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, program: str, *flags: str, shim: bool = True) -> Done:
        """One program from its start to its end."""
        return self.run_together([program], *flags, shim=shim)[0]

    def run_together(self, programs: list[str], *flags: str, shim: bool = True) -> list[Done]:
        """Several at once; each of the answers has the peak of all together."""
        with Peak() as peak:
            processes = [self.start(program, *flags, shim=shim) for program in programs]
            outputs = [process.communicate(timeout=LONGEST_SECONDS) for process in processes]
        states = self.states()
        return [
            Done(process.returncode, _values(output), peak.bytes, states, error)
            for process, (output, error) in zip(processes, outputs, strict=True)
        ]

    def states(self) -> list[Any]:
        """What shims left, of processes that have ended: removed for the next program."""
        found = []
        for path in sorted((self.folder / "run" / "main").glob("*.json")):
            found.append(json.loads(path.read_text()))
            path.unlink()
        return found


def _values(output: str) -> list[Any]:
    """JSON among what frameworks print."""
    found = []
    for line in output.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


@contextmanager
def container(**fields: Any) -> Iterator[Container]:
    """A container with the shim of this source tree."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "run").mkdir()
        subprocess.run(
            [sys.executable, "-m", "gpumem_shim", "install", str(folder / "shim")],
            env={**os.environ, "PYTHONPATH": str(ROOT / "sidecar")},
            check=True,
        )
        yield Container(folder, **fields)


def within(what: str, done: Done, limit: int) -> Iterator[Check]:
    """Two rows: the peak is within the limit, and most of it can be used, context included."""
    done.value  # noqa: B018 (a program that failed has nothing to show)
    text = f"{done.peak / MIB:.0f} of {limit / MIB:.0f} MiB"
    yield Check(f"{what}: NVML peak", "never over the limit", text, 0 < done.peak <= limit)
    share = 100 * done.peak / limit
    yield Check(f"{what}: usable", ">= 90 %", f"{share:.1f} %", share >= 90)


def two_announced(framework: str, program: str, container: Container) -> Iterator[Check]:
    """Two processes that share the limit, and both take all that they get at once."""
    limit = 16 * GIB
    variables = {**container.variables, "GPUMEM_PROCESSES_PER_GPU": "2"}
    announced = replace(container, limit=limit, variables=variables)
    first, _ = announced.run_together([program, program])
    yield from within(f"{framework}, two announced processes together", first, limit)


def two_of_which_one_was_announced(framework: str, program: str, container: Container) -> Check:
    """Each has the whole limit, which has to be told."""
    limit = 16 * GIB
    first, _ = replace(container, limit=limit).run_together([program, program])
    caps = [cap["capBytes"] for one in first.of(framework) for cap in one["caps"]]
    over = sum(caps) + RESERVE * len(caps)
    return Check(
        f"{framework}, two processes of which one was announced: caps + reserves",
        "more than the limit, so that it is reported",
        f"{over // MIB} of {limit // MIB} MiB",
        len(caps) == 2 and over > limit,
    )


def told(what: str, expected: object, seen: object) -> Check:
    return Check(what, str(expected), str(seen), expected == seen)


def wait_until(true: Any, seconds: float = 20.0) -> bool:
    """Whether it became true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.02)
    return False

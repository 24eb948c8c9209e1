"""What the driver says that processes and containers hold, looked at every 10 ms.

    python -m gpu_e2e.sampler

Runs in the namespaces of a node, as nobody's container. Answers every line of its input with one
line of JSON, and ends with its input. Times are seconds since 1970, amounts bytes.
"""

from __future__ import annotations

import json
import re
import select
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import pynvml

SAMPLE_SECONDS = 0.01
POD = re.compile(r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})")
CONTAINER = re.compile(r"([0-9a-f]{64})")


@dataclass
class Held:
    """By one process, or by all of one container together."""

    pod: str
    container: str
    now: int = 0
    peak: int = 0
    first: float = 0.0
    grew: float = 0.0
    """When it last came to hold more."""
    ended: float | None = None
    """When it first held nothing."""

    def holds(self, amount: int, at: float) -> None:
        if amount > self.now:
            self.grew = at
            self.first = self.first or at
        if amount == 0 and self.now and self.ended is None:
            self.ended = at
        elif amount:
            self.ended = None
        self.now, self.peak = amount, max(self.peak, amount)


@dataclass
class Sampler:
    processes: dict[int, Held] = field(default_factory=dict)
    containers: dict[str, Held] = field(default_factory=dict)

    def look(self, handles: list[Any]) -> None:
        at = time.time()
        listed = {pid: amount for handle in handles for pid, amount in _listed(handle)}
        sums: dict[str, int] = dict.fromkeys(self.containers, 0)
        for pid in listed.keys() | self.processes.keys():
            if pid not in self.processes:
                self.processes[pid] = Held(*_whose(pid))
            amount, process = listed.get(pid, 0), self.processes[pid]
            process.holds(amount, at)
            if process.container:
                self.containers.setdefault(process.container, Held(process.pod, process.container))
                sums[process.container] = sums.get(process.container, 0) + amount
        for identity, amount in sums.items():
            self.containers[identity].holds(amount, at)

    def answer(self) -> str:
        return json.dumps(asdict(self))


def _listed(handle: Any) -> Iterator[tuple[int, int]]:
    for ask in (
        pynvml.nvmlDeviceGetComputeRunningProcesses,
        pynvml.nvmlDeviceGetMPSComputeRunningProcesses,
    ):
        for one in ask(handle):
            yield one.pid, one.usedGpuMemory or 0


def _whose(pid: int) -> tuple[str, str]:
    """Pod and container of a process; empty where it is in none, or is gone."""
    try:
        with open(f"/proc/{pid}/cgroup") as file:
            text = file.read()
    except OSError:
        return "", ""
    pod, container = POD.search(text), CONTAINER.search(text)
    return pod[1].replace("_", "-") if pod else "", container[1] if container else ""


def main() -> None:
    pynvml.nvmlInit()
    handles = [
        pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())
    ]
    sampler = Sampler()
    print(json.dumps({"driver": _text(pynvml.nvmlSystemGetDriverVersion())}), flush=True)
    while True:
        if select.select([sys.stdin], [], [], SAMPLE_SECONDS)[0]:
            if not sys.stdin.readline():
                return
            print(sampler.answer(), flush=True)
        sampler.look(handles)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


if __name__ == "__main__":
    main()

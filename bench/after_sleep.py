"""What the same work costs a process that has just slept, against one that is at it: the machine's
share in figures about processes that sleep most of the time.

Caches and the translation of addresses belong to others meanwhile, on a virtual machine also those
of the host. Short work between long sleeps costs more, and on some days more than on others.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_WARM = 50
_ROWS = 1500
"""About as long as a sample of the sidecar: some three milliseconds."""


@dataclass(frozen=True)
class Rounds:
    """Milliseconds of processor time of one round each."""

    warm: tuple[float, ...]
    slept: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Of the medians."""
        return statistics.median(self.slept) / statistics.median(self.warm)


@contextmanager
def working(seconds: float, times: int) -> Iterator[subprocess.Popen[str]]:
    """A process of its own that sleeps so long between its rounds; `rounds_of` waits for it."""
    command = [sys.executable, "-m", "bench.after_sleep", str(seconds), str(times)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def rounds_of(process: subprocess.Popen[str]) -> Rounds:
    output, _ = process.communicate()
    found = json.loads(output)
    return Rounds(tuple(found["warm"]), tuple(found["slept"]))


def _round(document: str) -> float:
    before = time.process_time_ns()
    json.dumps(json.loads(document))
    return (time.process_time_ns() - before) / 1e6


def _work(seconds: float, times: int) -> Rounds:
    rows = [{"pid": row, "gpu": f"GPU-{row}", "amounts": [row] * 8} for row in range(_ROWS)]
    document = json.dumps(rows)
    warm = tuple(_round(document) for _ in range(_WARM))
    slept = []
    for _ in range(times):
        time.sleep(seconds)
        slept.append(_round(document))
    return Rounds(warm, tuple(slept))


if __name__ == "__main__":
    found = _work(float(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps({"warm": found.warm, "slept": found.slept}))

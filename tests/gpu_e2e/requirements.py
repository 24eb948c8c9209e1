"""What a machine needs for a run with its own GPU, looked at before anything is started."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import pynvml

from gpu_e2e import hardware, workload
from gpu_e2e.hardware import Hardware
from gpu_e2e.workload import Workload

GIB = 2**30
NEEDS_GIB: Final[Mapping[str, int]] = {
    "limits": 26,
    "queue": 4,
    "overuse": 26,
    "scaling": 12,
    "speed": 4,
    "mps": 9,
}
"""The most that the programs of a scenario hold at one time, with their contexts."""
FRAMEWORK = "torch"
"""With which all scenarios compute, but `limits`, `queue` and `mps`."""


class CanNotRunError(Exception):
    """Says why, and what to do."""


@dataclass(frozen=True)
class Machine:
    hardware: Hardware
    workload: Workload


def machine(python: str, rounds: Collection[Collection[str]]) -> Machine:
    """This one, for scenarios by their names, those of a round at the same time."""
    found = _driver()
    own = programs(python)
    free, needed = found.cards[0].free_bytes / GIB, gib_needed(rounds)
    if free < needed:
        raise CanNotRunError(
            f"{free:.1f} GiB of {found.cards[0].name} are free, and {needed} are needed. End what"
            " holds them (nvidia-smi lists it), or run fewer scenarios with --only."
        )
    return Machine(found, own)


def gib_needed(rounds: Collection[Collection[str]]) -> int:
    return max((sum(NEEDS_GIB[name] for name in together) for together in rounds), default=0)


def _driver() -> Hardware:
    try:
        found = hardware.find()
    except pynvml.NVMLError_LibraryNotFound:
        raise CanNotRunError(
            "No NVIDIA driver here (libnvidia-ml.so.1). Install it, or run with --simulated."
        ) from None
    except (pynvml.NVMLError, OSError) as error:
        raise CanNotRunError(
            f"The NVIDIA driver does not answer: {error}. Look what nvidia-smi says, or run with"
            " --simulated."
        ) from None
    if not found.cards:
        raise CanNotRunError("The NVIDIA driver lists no GPU. Run with --simulated.")
    return found


def programs(python: str) -> Workload:
    """What this Python runs in pods. Raises CanNotRunError."""
    try:
        found = workload.of_this_machine(python)
    except (OSError, subprocess.CalledProcessError) as error:
        raise CanNotRunError(
            f"{python} does not run: {error}. Name another with --python."
        ) from None
    if FRAMEWORK not in found.frameworks:
        others = ", ".join(found.frameworks)
        raise CanNotRunError(
            f"{python} has no {FRAMEWORK}{f', only {others}' if others else ' and no framework'}."
            " Name a Python that has it: --python /path/to/python."
        )
    return found

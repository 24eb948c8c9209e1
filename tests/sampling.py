"""A sidecar's or agent's sampler in a process of its own, on a simulated driver.

Run as a program it answers each line of its input, `{"advance": SECONDS}`, with one sample.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from devcluster.simulated_driver import environment
from shimmed import SIDECAR

OWN_POD = "5f0c8f3e-1111-4222-8333-444455556666"


class Sampling:
    """Asks the program for samples; `prefix` is a command to run it under, such as nsenter."""

    def __init__(
        self,
        driver: Path,
        *,
        agent: bool = False,
        prefix: Sequence[str] = (),
        child_namespace: bool | None = None,
        namespace_of_pod: bool = True,
        patience_seconds: float = 20.0,
        cards_folder: Path = Path("/nowhere"),
        variables: Mapping[str, str] = {},
    ) -> None:
        options = {
            "sender": "NodeAgent" if agent else "Sidecar",
            "child_namespace": child_namespace,
            "patience_seconds": patience_seconds,
            "cards_folder": str(cards_folder),
            "namespace_of_pod": namespace_of_pod,
        }
        paths = [str(SIDECAR), str(Path(__file__).parent), str(Path(__file__).parents[1])]
        self._process = subprocess.Popen(
            [*prefix, sys.executable, __file__, json.dumps(options)],
            env=environment(driver) | {"PYTHONPATH": ":".join(paths)} | dict(variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def sample(self, *, advance: float = 0.0) -> Any:
        """The report of this moment; NVML's door believes that `advance` more seconds passed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"advance": advance}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()


def amounts(report: Any) -> list[tuple[int, int | str]]:
    """Bytes, or why they are not known, by PID."""
    processes = sorted(report["processes"], key=lambda process: str(process["pid"]))
    return [
        (one["pid"], one["unknown"] if one["bytes"] is None else one["bytes"]) for one in processes
    ]


def main(options: Any) -> None:
    from gpumem_sidecar.cgroup_tree import CgroupTree
    from gpumem_sidecar.driver_limits import DriverLimits
    from gpumem_sidecar.nvml import Door
    from gpumem_sidecar.patience import Patient
    from gpumem_sidecar.report import Header, full
    from gpumem_sidecar.sampler import Sampler, viewpoint_of

    passed = [0.0]
    agent = options["sender"] == "NodeAgent"
    cgroups = os.environ.get("GPUMEM_CGROUP_PATH", "/sys/fs/cgroup")
    limits = DriverLimits(CgroupTree(cgroups)) if agent else None
    door = Door(limits=limits, cards_folder=options["cards_folder"], clock=lambda: passed[0])
    viewpoint = viewpoint_of(
        options["sender"],
        None if agent else OWN_POD,
        namespace_of_pod=options["namespace_of_pod"],
    )
    if options["child_namespace"] is not None:
        viewpoint = viewpoint._replace(child_namespace=options["child_namespace"])
    sampler = Sampler(
        Patient(door.read, options["patience_seconds"]).ask,
        viewpoint,
        run_folder="" if agent else os.environ.get("GPUMEM_RUN_PATH", "/nowhere"),
        pods_folder=os.environ.get("GPUMEM_PODS_PATH", "") if agent else "",
    )
    for number, line in enumerate(sys.stdin):
        passed[0] += json.loads(line)["advance"]
        message = full(Header(options["sender"], "test", number, 0), sampler.sample())
        known = {"outdated": door.outdated, "ignored": sampler.ignored_files}
        print(json.dumps(message | known), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

"""The sampler of a node, as one object."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from devcluster.node import Node
from devcluster.packagepath import python_path
from gpu_e2e.sampler import Held


@dataclass(frozen=True)
class Picture:
    """What the driver says, and what it said before."""

    processes: Mapping[int, Held]
    """By the node's PIDs."""
    containers: Mapping[str, Held]

    def of_pod(self, uid: str) -> Held:
        """The container of a pod that holds, or held, most; one that holds nothing if none does."""
        own = [one for one in self.containers.values() if one.pod == uid]
        return max(own, key=lambda one: one.peak, default=Held(uid, ""))

    def processes_of(self, uid: str) -> dict[int, Held]:
        """Those that hold something now."""
        return {pid: one for pid, one in self.processes.items() if one.pod == uid and one.now}


class Watch:
    """Looks from the start to the end of a `with`."""

    def __init__(self, node: Node, variables: Mapping[str, str]) -> None:
        paths = [*sys.path, python_path()]
        given = {**variables, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        environment = ["env", *("=".join(pair) for pair in given.items())]
        program = [sys.executable, "-m", "gpu_e2e.sampler"]
        self._process = subprocess.Popen(
            [*node.inside, *environment, *program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
        )
        self._lock = threading.Lock()
        self.driver: str = self._answer()["driver"]
        """Its version."""

    def look(self) -> Picture:
        with self._lock:
            assert self._process.stdin is not None
            self._process.stdin.write("\n")
            self._process.stdin.flush()
            raw = self._answer()
        return Picture(
            {int(pid): Held(**one) for pid, one in raw["processes"].items()},
            {identity: Held(**one) for identity, one in raw["containers"].items()},
        )

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the sampler ended with status {self._process.wait()}")
        return json.loads(line)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

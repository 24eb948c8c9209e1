"""Processes that hold memory of a simulated card, started from Python."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from devcluster.failure import ClusterError
from devcluster.simulated_driver.build import build

ANSWER_SECONDS = 10.0


def environment(folder: Path) -> dict[str, str]:
    """This process's environment, and what makes pynvml find the simulated driver and its state.

    LD_LIBRARY_PATH is read when a process starts: it has to be set before, not with os.environ."""
    paths = [str(build().folder), os.environ.get("LD_LIBRARY_PATH", "")]
    return os.environ | {
        "SIMULATED_NVIDIA_DRIVER": str(folder),
        "LD_LIBRARY_PATH": ":".join(filter(None, paths)),
    }


class Allocation:
    """One simulated-alloc that holds memory from construction to `end`.

    Raises ClusterError with the program's own words when it does not get the memory."""

    def __init__(
        self,
        folder: Path,
        gpu: str,
        mib: int,
        *,
        kind: str = "compute",
        managed_mib: int = 0,
        cgroup: str | None = None,
        prefix: Sequence[str] = (),
    ) -> None:
        """`prefix` is a command to run it under, such as unshare."""
        command = [*prefix, str(build().program), "--gpu", gpu, "--mib", str(mib)]
        command += ["--kind", kind, "--managed-mib", str(managed_mib)]
        extra = {"SIMULATED_NVIDIA_CGROUP": cgroup} if cgroup else {}
        self._process = subprocess.Popen(
            command,
            env=environment(folder) | extra,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid_inside = int(self._answer().rsplit(" ", 1)[1])
        """The PID of simulated-alloc in its own PID namespace."""

    @property
    def pid(self) -> int:
        """The PID of the started process: that of `prefix`, if there is one."""
        return self._process.pid

    def set(self, mib: int) -> None:
        self._tell(f"set {mib}")

    def set_managed(self, mib: int) -> None:
        self._tell(f"managed {mib}")

    def end(self) -> None:
        """Asks on its input, which works in every PID namespace; kills it after 10 s."""
        try:
            self._process.communicate("end\n", timeout=ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """SIGKILL to the started process: a prefix must take its child along."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    def _tell(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], ANSWER_SECONDS)
        line = self._process.stdout.readline() if ready else ""
        if line:
            return line.rstrip()
        self._process.kill()
        _, errors = self._process.communicate()
        raise ClusterError(errors.strip() or f"simulated-alloc was silent for {ANSWER_SECONDS} s")

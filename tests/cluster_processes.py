"""Watching processes of clusters from outside, without asking the code under test."""

from __future__ import annotations

import os
import select
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from patience import PATIENCE_SECONDS

REPOSITORY = Path(__file__).parents[1]


@contextmanager
def caller(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A process that runs `python ARGUMENTS` in the repository; killed at the end."""
    with subprocess.Popen(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def printed_kubeconfig(process: subprocess.Popen[str]) -> Path:
    """The path that `devcluster start` prints once its cluster is ready."""
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line, "the command ended without printing a kubeconfig"
    return Path(line)


class Processes:
    """Some processes that run now, pinned so that their ids can not come to mean others."""

    def __init__(self, pids: list[int]) -> None:
        self._pidfds = [os.pidfd_open(pid) for pid in pids]

    def __len__(self) -> int:
        return len(self._pidfds)

    @property
    def ended(self) -> bool:
        """Whether all are gone at this moment."""
        return all(select.select([pidfd], [], [], 0)[0] for pidfd in self._pidfds)

    def wait_until_gone(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        for pidfd in self._pidfds:
            left = max(0.0, deadline - time.monotonic())
            assert select.select([pidfd], [], [], left)[0], "a process is still there"
            os.close(pidfd)


def keeper_and_components(keeper: int) -> Processes:
    children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
    return Processes([keeper, *map(int, children)])


def write_script(path: Path, *lines: str) -> Path:
    """An executable shell script that stands for some program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path

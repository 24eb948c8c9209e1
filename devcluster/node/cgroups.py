"""The cgroup below which one node keeps those of its pods.

Unlike namespaces, cgroups stay when their processes are gone, so they are removed by name. The
name says whose they are: those of a keeper that was killed are removed by whoever comes next.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from devcluster.registry import process_start

ROOT = Path("/sys/fs/cgroup")
PREFIX = "devcluster-"
REMOVAL_SECONDS = 10.0
PAUSE_SECONDS = 0.05


def hierarchies() -> list[Path]:
    """Where cgroups can be made: one folder in version 2, one for each controller in version 1."""
    if not ROOT.is_dir() or not os.access(ROOT, os.W_OK):
        return []
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    found = {path.resolve() for path in ROOT.iterdir() if (path / "cgroup.procs").exists()}
    return sorted(path for path in found if os.access(path, os.W_OK))


def own_name() -> str:
    """The name of this process's cgroup, below the root of every hierarchy."""
    return f"{PREFIX}{os.getpid()}-{process_start(os.getpid())}"


def create(name: str) -> None:
    for hierarchy in hierarchies():
        (hierarchy / name).mkdir(exist_ok=True)


def remove(name: str) -> None:
    """Remove a cgroup with all below it, whose processes have ended."""
    for hierarchy in hierarchies():
        _remove_tree(hierarchy / name)


def remove_abandoned() -> None:
    """Remove the cgroups of keepers that were killed."""
    for hierarchy in hierarchies():
        for path in hierarchy.glob(f"{PREFIX}*-*"):
            _, pid, start = path.name.split("-", 2)
            if process_start(int(pid)) != start:
                _remove_tree(path)


def _remove_tree(top: Path) -> None:
    deadline = time.monotonic() + REMOVAL_SECONDS
    for folder, _, _ in os.walk(top, topdown=False):
        while True:
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                pass
            except OSError:
                # A killed process leaves its cgroup a moment after it is reaped.
                if time.monotonic() < deadline:
                    time.sleep(PAUSE_SECONDS)
                    continue
            break

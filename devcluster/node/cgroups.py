"""The cgroup below which one node keeps those of its pods.

Unlike namespaces, cgroups stay when their processes are gone, so they are removed by name. The
name says whose they are: those of a keeper that was killed are removed by whoever comes next.

In version 2 a cgroup has the controllers that its parent hands down, and a kubelet refuses one
that lacks any of those it could use. What systemd did not turn on is turned on here, and stays on:
by the end somebody else may rely on it. A parent with processes of its own hands nothing down,
unless it is the root of the whole machine; in a container, the processes at its root make room.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from devcluster.failure import ClusterError
from devcluster.registry import process_start

ROOT = Path("/sys/fs/cgroup")
PREFIX = "devcluster-"
REMOVAL_SECONDS = 10.0
PAUSE_SECONDS = 0.05
KUBELET_CONTROLLERS = ("cpu", "cpuset", "hugetlb", "memory", "pids")
"""What a kubelet asks of its cgroup, where the machine has it (`getSupportedUnifiedControllers` in
pkg/kubelet/cm)."""
LEAF = "devcluster-init"
"""Where processes go that stood at the root of a container. As a name it is nobody's: no keeper
matches it, and it stays as long as they do."""


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
    """Make a node's cgroup, with every controller that a kubelet wants.

    Raises ClusterError where a parent does not hand one down."""
    for hierarchy in hierarchies():
        # Beside version 1 the second one is not what a kubelet takes.
        if hierarchy == ROOT:
            hand_down(hierarchy)
        (hierarchy / name).mkdir(exist_ok=True)


def hand_down(parent: Path) -> None:
    """Have a cgroup of version 2 give its children what a kubelet wants of it."""
    missing = controllers_to_hand_down(
        available=(parent / "cgroup.controllers").read_text().split(),
        given=(parent / "cgroup.subtree_control").read_text().split(),
    )
    for controller in missing:
        turn_on(controller, parent)


def controllers_to_hand_down(*, available: Collection[str], given: Collection[str]) -> list[str]:
    """What a kubelet wants and could have, and the parent does not give to its children yet."""
    return [name for name in KUBELET_CONTROLLERS if name in available and name not in given]


def turn_on(controller: str, parent: Path) -> None:
    """Give the children of a cgroup of version 2 a controller, which it has to have itself."""
    deadline = time.monotonic() + REMOVAL_SECONDS
    while True:
        try:
            (parent / "cgroup.subtree_control").write_text(f"+{controller}")
            return
        except OSError as error:
            in_the_way = error.errno == errno.EBUSY and _is_below_another(parent)
            if not in_the_way or time.monotonic() > deadline:
                raise ClusterError(
                    f"A kubelet wants the cgroup controller {controller}, and {parent} does not"
                    f" give it to the cgroups below: {error.strerror}. Try `echo +{controller} >"
                    f" {parent}/cgroup.subtree_control`, or start the node where that is allowed"
                    " (of containers, in a privileged one)."
                ) from None
        # Again and again: while they are moved, they may start others.
        _move_processes(parent, parent / LEAF)


def _is_below_another(cgroup: Path) -> bool:
    """The root of the machine alone has no type, and may have processes and children with them."""
    return (cgroup / "cgroup.type").exists()


def _move_processes(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for pid in (source / "cgroup.procs").read_text().split():
        with suppress(ProcessLookupError):
            (target / "cgroup.procs").write_text(pid)


def remove(name: str) -> None:
    """Remove a cgroup with all below it, whose processes have ended."""
    for hierarchy in hierarchies():
        _remove_tree(hierarchy / name)


def remove_abandoned() -> None:
    """Remove the cgroups of keepers that were killed."""
    for hierarchy in hierarchies():
        for path in hierarchy.glob(f"{PREFIX}[0-9]*-*"):
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

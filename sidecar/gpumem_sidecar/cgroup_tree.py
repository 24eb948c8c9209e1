"""The node's cgroups of version 2, as far as they are mounted here.

/proc/PID/cgroup gives paths relative to the reader's cgroup namespace: in a container, those of
others are `/../../podUID/ID`. Where this process itself stands in the mounted tree makes them
whole; it is the folder that lists its PID. Without the node's tree (a container is given its own
group alone) the paths lead out of what is mounted, and nothing is said.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from gpumem_sidecar.cgroups import container_folder, unified_path, whole
from gpumem_sidecar.processes import cgroup_of

NODES_FIRST = 1
"""Process of the node's PID namespace: where it is outside of the tree, others are."""


class CgroupTree:
    """Finds the groups of containers. Not for several threads at once."""

    def __init__(self, root: str, proc: str = "/proc") -> None:
        """`root` is where cgroup v2 is mounted, for example /sys/fs/cgroup."""
        self.root = root.rstrip("/")
        self._proc = proc
        self._namespace: tuple[str, ...] | None = None
        """The root of this process's cgroup namespace in the tree; it does not change."""

    def is_the_nodes(self) -> bool:
        """Whether the groups of others can be named: not so in a container of its own."""
        if not os.path.exists(f"{self.root}/cgroup.controllers"):
            return False
        return self._whole(cgroup_of(NODES_FIRST, self._proc) or "") is not None

    def container_of(self, pid: int) -> str | None:
        """The folder of a process's container; None for a process in none, or out of sight."""
        path = self._whole(cgroup_of(pid, self._proc) or "")
        folder = container_folder(path) if path is not None else None
        return f"{self.root}{folder}" if folder else None

    def _whole(self, text: str) -> str | None:
        path = unified_path(text)
        if self._namespace is None:
            self._namespace = self._find_namespace()
        if path is None or self._namespace is None:
            return None
        return whole(self._namespace, path)

    def _find_namespace(self) -> tuple[str, ...] | None:
        """Where this process stands, less what it sees of that itself."""
        seen = unified_path(cgroup_of(os.getpid(), self._proc) or "")
        found = self._own_folder()
        if seen is None or found is None:
            return None
        inside = [part for part in seen.split("/") if part]
        stands = [part for part in found.removeprefix(self.root).split("/") if part]
        kept = len(stands) - len(inside)
        return tuple(stands[:kept]) if kept >= 0 and stands[kept:] == inside else None

    def _own_folder(self) -> str | None:
        own = str(os.getpid())
        return next((path for path, pids in self._groups() if own in pids), None)

    def _groups(self) -> Iterator[tuple[str, list[str]]]:
        """All groups of the tree with their processes; one that goes meanwhile has none."""
        for path, _, files in os.walk(self.root):
            if "cgroup.procs" in files:
                try:
                    with open(f"{path}/cgroup.procs", encoding="ascii") as file:
                        yield path, file.read().split()
                except OSError:
                    continue

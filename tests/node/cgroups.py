"""What NVIDIA's container toolkit does with a driver that can limit cgroups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from devcluster.installation import NAMESPACE
from devcluster.node import Node

UNLIMITED = 2**64 - 1
SET = """
import pynvml, sys
pynvml.nvmlInit()
for index in range(pynvml.nvmlDeviceGetCount()):
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    limits = pynvml.c_nvmlSetMemoryLimits_v1_t(sys.argv[1].encode(), 0, int(sys.argv[2]))
    pynvml.nvmlDeviceSetMemoryLimits_v1(handle, limits)
"""


def unified() -> Path:
    """Where cgroup v2 is mounted here, for everything or beside v1."""
    roots = [Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")]
    return next((one for one in roots if (one / "cgroup.controllers").exists()), roots[0])


class Group:
    """The group of a pod's container `main` in cgroup v2.

    Where containers are in v1 alone it is made here, with the name that it would have."""

    def __init__(self, node: Node, pod: dict[str, Any]) -> None:
        self._node = node
        [main] = pod["status"]["containerStatuses"]
        identity = main["containerID"].partition("://")[2]
        found = next(unified().rglob(identity), None)
        self._made = found is None
        uid = pod["metadata"]["uid"]
        self.folder = found or unified() / f"gpumem-{uid}" / "kubepods" / f"pod{uid}" / identity
        self.folder.mkdir(parents=True, exist_ok=True)

    def take(self, pids: Iterable[int]) -> None:
        for pid in pids if self._made else ():
            (self.folder / "cgroup.procs").write_text(str(pid))

    def limit(self, amount: int) -> None:
        """By root in the agent's container, where the driver's library and the cgroups are."""
        path = f"/sys/fs/cgroup/{self.folder.relative_to(unified())}"
        where = ["daemonset/gpu-memory-operator-agent", "-n", NAMESPACE, "--"]
        self._node.cluster.kubectl("exec", *where, "python", "-c", SET, path, str(amount))

    def lift(self) -> None:
        self.limit(UNLIMITED)

    def leave(self) -> None:
        """Back to where the processes were, and away with what was made."""
        if not self._made:
            return
        for pid in (self.folder / "cgroup.procs").read_text().split():
            (unified() / "cgroup.procs").write_text(pid)
        for folder in [self.folder, *self.folder.parents][:4]:
            folder.rmdir()


@contextmanager
def limit_group(node: Node, pod: dict[str, Any], amount: int) -> Iterator[Group]:
    """The group, with a limit on every card."""
    group = Group(node, pod)
    try:
        group.limit(amount)
        yield group
    finally:
        group.leave()

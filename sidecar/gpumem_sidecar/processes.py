"""What the kernel tells about a process: /proc/PID/stat, status and cgroup."""

from __future__ import annotations

import os
from typing import NamedTuple

INITIAL_PID_NAMESPACE = 0xEFFFFFFC
"""Inode of the first PID namespace of a machine (PROC_PID_INIT_INO of the kernel)."""
LONGEST_FILE = 64 * 1024
"""Bytes; /proc/PID/cgroup has one short line, or a dozen with cgroup v1."""


class Facts(NamedTuple):
    """One process; `start_time` makes it one of a kind, because process ids are used again."""

    start_time: int
    """Clock ticks after boot."""
    cgroup: str
    inner_pid: int
    """Its PID in its own, innermost PID namespace."""


def facts_of(pid: int, proc: str = "/proc") -> Facts | None:
    """None where no such process is (any more), or where another one took its place meanwhile."""
    folder = f"{proc}/{pid}"
    try:
        start = _start_time(folder)
        cgroup = _read(f"{folder}/cgroup")
        inner = _inner_pid(_read(f"{folder}/status"), pid)
        if _start_time(folder) != start:
            return None
    except (OSError, ValueError, IndexError):
        return None
    return Facts(start, cgroup, inner)


def cgroup_of(pid: int, proc: str = "/proc") -> str | None:
    """The text of /proc/PID/cgroup; None where no such process is."""
    try:
        return _read(f"{proc}/{pid}/cgroup")
    except OSError:
        return None


def _start_time(folder: str) -> int:
    # The second field is the command in parentheses, and may hold anything, `)` as well.
    return int(_read(f"{folder}/stat").rpartition(")")[2].split()[19])


def _inner_pid(status: str, pid: int) -> int:
    for line in status.splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return pid  # a kernel without PID namespaces


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(LONGEST_FILE)


def in_child_namespace(namespace: str = "/proc/self/ns/pid") -> bool:
    """Whether this process's PID namespace is not the machine's first."""
    return os.stat(namespace).st_ino != INITIAL_PID_NAMESPACE


def is_alone() -> bool:
    """Whether this process sees no others than its own: as process 1 it has a PID namespace to
    itself, where the pause process would be 1 in a pod that shares one."""
    return os.getpid() == 1

"""What the kernel tells about a process: /proc/PID/stat, status and cgroup."""

from __future__ import annotations

import os
from itertools import islice
from typing import NamedTuple

INITIAL_PID_NAMESPACE = 0xEFFFFFFC
"""Inode of the first PID namespace of a machine (PROC_PID_INIT_INO of the kernel)."""
LONGEST_FILE = 64 * 1024
"""Bytes; /proc/PID/cgroup has one short line, or a dozen with cgroup v1."""

EXITING = 0x4
"""Of the flags in /proc/PID/stat (PF_EXITING of the kernel): the thread is ending or has ended."""
MOST_THREADS = 64
"""Looked at for one that goes on; those that have ended, the first one apart, go from the list."""


class Facts(NamedTuple):
    """One process; `start_time` makes it one of a kind, because process ids are used again."""

    start_time: int
    """Clock ticks after boot."""
    cgroup: str
    inner_pid: int
    """Its PID in its own, innermost PID namespace."""


class Unreadable(NamedTuple):
    """A process that is there, and of which the kernel does not tell what it should."""

    why: str


def facts_of(pid: int, proc: str = "/proc") -> Facts | Unreadable | None:
    """None where no such process is (any more), or where another one took its place meanwhile."""
    folder = f"{proc}/{pid}"
    try:
        stat = _Stat.of(folder)
        cgroup = _read(f"{_living(folder, stat)}/cgroup")
        inner = _inner_pid(_read(f"{folder}/status"), pid)
        if _Stat.of(folder).start_time != stat.start_time:
            return None
    except (OSError, ValueError, IndexError) as error:
        # Whatever could not be read: a process is gone where its folder is, and nowhere else.
        return Unreadable(f"{type(error).__name__}: {error}") if os.path.exists(folder) else None
    return Facts(stat.start_time, cgroup, inner)


def cgroup_of(pid: int, proc: str = "/proc") -> str | None:
    """The text of /proc/PID/cgroup; None where it can not be read."""
    try:
        return _read(f"{proc}/{pid}/cgroup")
    except OSError:
        return None


class _Stat(NamedTuple):
    """What is needed of /proc/PID/stat."""

    exiting: bool
    start_time: int

    @classmethod
    def of(cls, folder: str) -> _Stat:
        # The second field is the command in parentheses, and may hold anything, `)` as well.
        fields = _read(f"{folder}/stat").rpartition(")")[2].split()
        return cls(bool(int(fields[6]) & EXITING), int(fields[19]))


def _living(folder: str, stat: _Stat) -> str:
    """The folder of a thread that goes on. The first thread of a process may have ended before the
    others, and with cgroup v1 it is in the root group then (proc_cgroup_show of the kernel)."""
    if not stat.exiting:
        return folder
    with os.scandir(f"{folder}/task") as threads:
        for thread in islice(threads, MOST_THREADS):
            try:
                if not _Stat.of(thread.path).exiting:
                    return thread.path
            except OSError:
                continue  # it ended meanwhile
    return folder  # the whole process is ending


def _inner_pid(status: str, pid: int) -> int:
    # A program may put every letter but a line feed, which the kernel escapes, into its name, and
    # so write what other ways of splitting take for the beginning of a line.
    for line in status.split("\n"):
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return pid  # a kernel without PID namespaces


def _read(path: str) -> str:
    # No translation of line ends: a carriage return is a letter of a name like others.
    with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
        return file.read(LONGEST_FILE)


def in_child_namespace(namespace: str = "/proc/self/ns/pid") -> bool:
    """Whether this process's PID namespace is not the machine's first."""
    return os.stat(namespace).st_ino != INITIAL_PID_NAMESPACE


def is_alone() -> bool:
    """Whether this process sees no others than its own: as process 1 it has a PID namespace to
    itself, where the pause process would be 1 in a pod that shares one."""
    return os.getpid() == 1

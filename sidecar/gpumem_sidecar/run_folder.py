"""Reads what shims left in a folder that users' programs can write to.

A user's program may plant anything there: links to other files of the node, pipes that never end
a read, files of any size, more files than can be read. So every component is opened without
following a link, nothing is opened that could block, and everything has a limit. Whoever knows
which processes there are opens their files by name: what else lies there costs nothing.

Who owns a file is not asked. A process may have been another user when it wrote it (setuid), and
goes on to mean it; with a user namespace of the pod's own, the agent sees the user of a process
shifted and that of a file not. Either would be a false alarm, and nothing is gained: whoever can
write here can also take a file away, and speaks for its own pod alone.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from gpumem_sidecar.shim_state import State, parse

LARGEST_FILE = 16 * 1024
MOST_CONTAINERS = 64
MOST_NAMES = 8192
"""Names looked at, in all containers together."""
MOST_FILES = 1024
"""Files opened, in all containers together."""

ProcessKey = tuple[int, int]
"""A process's id in its own namespace, and its start time."""


class Allowance(NamedTuple):
    """What may be spent on the files of one pod for one sample."""

    opens: int = 16 * 1024
    """Attempts to open a file by its name; one that fails takes some microseconds."""
    bytes: int = 2**20
    """Read, of all files together; a file of an honest process has some hundred."""

    def within(self, all_pods: Allowance, pods: int) -> Allowance:
        """No more than the part of each of so many pods: none takes anything from the others."""
        each = (all_pods.opens // max(pods, 1), all_pods.bytes // max(pods, 1))
        return Allowance(min(self.opens, each[0]), min(self.bytes, each[1]))


OF_ONE_POD = Allowance()


class Found(NamedTuple):
    """States of processes, and the processes for which the allowance was too small."""

    states: tuple[State, ...] = ()
    unread: frozenset[ProcessKey] = frozenset()


_CONTAINER_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_TOP = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class RunFolder:
    """`<path>/<container>/<pid>-<start time>.json`. `path` itself is trusted, what is below is
    not: `below` are components that are opened one by one, without following links."""

    def __init__(self, path: str, below: Collection[str] = ()) -> None:
        self._path = path
        self._below = tuple(below)
        self.ignored = 0
        """Files so far that were not what they should be."""

    def states(self) -> list[State]:
        """All states that are there; empty where there is none."""
        found: list[State] = []
        names, files = MOST_NAMES, MOST_FILES
        for container, folder in self._containers():
            listed = _names(folder, names)
            names -= len(listed)
            keys = [key for name in listed if (key := _key_in(name)) is not None][:files]
            files -= len(keys)
            found += (one for key in keys if (one := self._state(folder, container, key)[0]))
        return found

    def of(self, wanted: Collection[ProcessKey], allowance: Allowance = OF_ONE_POD) -> Found:
        """The states of these processes, as far as the allowance goes."""
        opens, left = allowance
        open_keys = set(wanted)
        found: list[State] = []
        for container, folder in self._containers():
            for key in sorted(open_keys):
                if opens <= 0 or left <= 0:
                    return Found(tuple(found), frozenset(open_keys))
                opens -= 1
                state, size = self._state(folder, container, key)
                left -= size
                if state is not None:
                    found.append(state)
                    open_keys.remove(key)
        return Found(tuple(found))

    def state(self, container: str, key: ProcessKey) -> State | None:
        """That of one process of one container; None where there is none."""
        try:
            with self.container(container) as folder:
                return self._state(folder, container, key)[0]
        except OSError:
            return None

    @contextmanager
    def container(self, name: str) -> Iterator[int]:
        """A descriptor of one container's folder. Raises OSError where it is none."""
        if not _CONTAINER_NAME.fullmatch(name):
            raise FileNotFoundError(f"{name[:64]!r} is no container's name")
        with self._top() as top, _opened(name, _FOLDER, top) as folder:
            yield folder

    @contextmanager
    def _top(self) -> Iterator[int]:
        with ExitStack() as stack:
            folder = stack.enter_context(_opened(self._path, _TOP))
            for part in self._below:
                folder = stack.enter_context(_opened(part, _FOLDER, folder))
            yield folder

    def _containers(self) -> Iterator[tuple[str, int]]:
        """Names and descriptors, each open until the next one is asked for. None where no shim was
        started yet, or the folder is none."""
        with ExitStack() as stack:
            try:
                top = stack.enter_context(self._top())
                names = _names(top, MOST_CONTAINERS)
            except OSError:
                return
            for name in names:
                if not _CONTAINER_NAME.fullmatch(name):
                    self.ignored += 1
                    continue
                with ExitStack() as one:
                    try:
                        folder = one.enter_context(_opened(name, _FOLDER, top))
                    except OSError:
                        self.ignored += 1
                        continue
                    yield name, folder

    def _state(self, folder: int, container: str, key: ProcessKey) -> tuple[State | None, int]:
        """The state, and the bytes that were read for it."""
        size = 0
        try:
            with _opened(f"{key[0]}-{key[1]}.json", _FILE, folder) as file:
                content = _content(file)
            size = len(content)
            state = parse(content)
        except FileNotFoundError:
            return None, 0  # none was written here, or it is replaced or removed in this moment
        except (OSError, ValueError):
            self.ignored += 1
            return None, size
        # The folder says which container, and a file of another name is not its own.
        is_own = (state.pid, state.start_time) == key
        return (state._replace(container=container) if is_own else None), size


def _names(folder: int, most: int) -> list[str]:
    names: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if len(names) == most:
                break
            names.append(entry.name)
    return names


def _key_in(name: str) -> ProcessKey | None:
    pid, _, start = name.removesuffix(".json").partition("-")
    if not (_is_number(pid) and _is_number(start)):
        return None
    key = int(pid), int(start)
    return key if name == f"{key[0]}-{key[1]}.json" else None  # and not 007-1.json


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20


def _content(file: int) -> bytes:
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise ValueError("not a regular file")
    content = os.read(file, LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ValueError(f"more than {LARGEST_FILE} bytes")
    return content


@contextmanager
def _opened(name: str, flags: int, folder: int | None = None) -> Iterator[int]:
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)

"""Reads what shims left in a folder that users' programs can write to.

A user's program may plant anything there: links to other files of the node, pipes that never end
a read, files of any size, more files than can be read. So every component is opened without
following a link, nothing is opened that could block, and everything has a limit.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager

from gpumem_sidecar.shim_state import State, parse

LARGEST_FILE = 16 * 1024
MOST_CONTAINERS = 64
MOST_NAMES = 4096
"""Names looked at per container."""
MOST_FILES = 1024
"""Files opened per folder."""

_CONTAINER_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
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

    def states(self, wanted: Collection[tuple[int, int]] | None = None) -> list[State]:
        """All states, or those of the wanted PIDs and start times. Empty where there is none."""
        found: list[State] = []
        try:
            with _opened(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) as top:
                self._descend(top, self._below, wanted, found)
        except OSError:
            pass  # no shim was started yet, or the folder is none
        return found

    @contextmanager
    def container(self, name: str) -> Iterator[int]:
        """A descriptor of one container's folder. Raises OSError where it is none."""
        if not _CONTAINER_NAME.fullmatch(name):
            raise FileNotFoundError(f"{name[:64]!r} is no container's name")
        with ExitStack() as stack:
            top = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
            folder = stack.enter_context(_opened(self._path, top))
            for part in (*self._below, name):
                folder = stack.enter_context(_opened(part, _FOLDER, folder))
            yield folder

    def _descend(
        self,
        folder: int,
        below: tuple[str, ...],
        wanted: Collection[tuple[int, int]] | None,
        found: list[State],
    ) -> None:
        if below:
            with _opened(below[0], _FOLDER, folder) as next_one:
                return self._descend(next_one, below[1:], wanted, found)
        for name in _names(folder, MOST_CONTAINERS):
            if not _CONTAINER_NAME.fullmatch(name):
                self.ignored += 1
                continue
            try:
                with _opened(name, _FOLDER, folder) as container:
                    found += self._in_container(container, name, wanted, MOST_FILES - len(found))
            except OSError:
                self.ignored += 1
        return None

    def _in_container(
        self,
        folder: int,
        container: str,
        wanted: Collection[tuple[int, int]] | None,
        most: int,
    ) -> Iterator[State]:
        opened = 0
        for name in _names(folder, MOST_NAMES):
            key = _key_in(name)
            if key is None or (wanted is not None and key not in wanted):
                continue
            if opened == most:
                return
            opened += 1
            state = self._state(folder, name)
            # The folder says which container, and a file of another name is not its own.
            if state is not None and (state.pid, state.start_time) == key:
                yield state._replace(container=container)

    def _state(self, folder: int, name: str) -> State | None:
        try:
            with _opened(name, _FILE, folder) as file:
                return parse(_content(file))
        except FileNotFoundError:
            return None  # replaced or removed in this moment
        except (OSError, ValueError):
            self.ignored += 1
            return None


def _names(folder: int, most: int) -> list[str]:
    names: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if len(names) == most:
                break
            names.append(entry.name)
    return names


def _key_in(name: str) -> tuple[int, int] | None:
    pid, _, start = name.removesuffix(".json").partition("-")
    is_name = name.endswith(".json") and _is_number(pid) and _is_number(start)
    return (int(pid), int(start)) if is_name else None


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

"""`<pid>-<start time>.order` beside the shim's state file: JSON that the shim looks for.

The folder can be written to by the pod's programs, so nothing there is followed or trusted: the
file is made anew under a name of its own and takes the place of whatever has its name.
"""

from __future__ import annotations

import json
import os

SCHEMA_VERSION = 1

Key = tuple[int, int]
"""The process's id in its own namespace, and its start time."""


def content(order_id: str) -> bytes:
    """What the shim reads."""
    order = {"schemaVersion": SCHEMA_VERSION, "id": order_id, "action": "Reclaim"}
    return json.dumps(order, indent=2).encode() + b"\n"


def give(folder: int, key: Key, order_id: str) -> None:
    """Put the order into an open folder. Raises OSError."""
    name = _name(key)
    wanted = content(order_id)
    if _read(folder, name, len(wanted) + 1) == wanted:
        return
    temporary = f".{name}"
    take_away(folder, temporary)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(temporary, flags, 0o644, dir_fd=folder)
    try:
        # Programs may run as any user, and a umask would keep them from it.
        os.fchmod(file, 0o644)
        if os.write(file, wanted) != len(wanted):
            raise OSError(f"{temporary} could be written in part only")
    finally:
        os.close(file)
    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def take_back(folder: int, key: Key) -> None:
    """Remove the order; it has been answered."""
    take_away(folder, _name(key))


def take_away(folder: int, name: str) -> None:
    """Remove a file where there is one that we may remove."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return


def _name(key: Key) -> str:
    return f"{key[0]}-{key[1]}.order"


def _read(folder: int, name: str, most: int) -> bytes | None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        file = os.open(name, flags, dir_fd=folder)
    except OSError:
        return None
    try:
        return os.read(file, most)
    except OSError:
        return None
    finally:
        os.close(file)

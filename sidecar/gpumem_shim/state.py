"""What this process tells about itself: one small file that the sidecar reads.

`<run>/<container>/<pid>-<start time>.json`, replaced as a whole at every change. Process ids are
used again, and together with the start time they are not. It is the process's own claim.

Where it lies is settled with the first import of a framework, as the limits are: a program that
clears its environment later would leave a file behind that is never true again.
"""

from __future__ import annotations

import os
from _thread import RLock
from dataclasses import dataclass, field
from json import dumps

from gpumem_shim.faults import kept
from gpumem_shim.limits import Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION = 1
LONGEST_VERSION = 64
LONGEST_VALUE = 32
TELLING_BYTES = 16 * 2**20
"""Amounts that differ by less are told with the next change."""


@dataclass
class Framework:
    """A framework that was imported, and what became of its cap."""

    version: str | None = None
    caps: dict[str, int] = field(default_factory=dict)
    """Bytes by UUID of the GPU or MIG instance."""
    not_capped: str | None = None
    """Why it has no cap on the GPUs that `caps` does not have; one word in CamelCase."""
    cap_hits: int | None = None
    """Allocations so far that failed on a cap; None is unknown."""
    reclaim: str | None = None
    """Supported or Unsupported: giving cached memory back."""


@dataclass
class Held:
    """What the process holds on one GPU; None is unknown."""

    bytes: int | None
    outside_bytes: int | None
    """Beside the allocators of all frameworks."""


@dataclass
class Server:
    """An inference server, and what became of the share of the card that it takes."""

    version: str | None
    argument: str
    asked: str
    """As the program had it."""
    applied: str
    reason: str | None = None
    """Why it does not bound what the server takes; one word in CamelCase, None where it does."""


@dataclass
class Reclaimed:
    """What became of the last order to give cached memory back."""

    id: str
    result: str
    bytes: int | None = None


@dataclass
class State:
    """All that is told, beside what names the process."""

    limits: Limits
    frameworks: dict[str, Framework] = field(default_factory=dict)
    servers: dict[str, Server] = field(default_factory=dict)
    gpus: dict[str, Held] = field(default_factory=dict)
    reclaimed: Reclaimed | None = None


UNKNOWN = Held(None, None)
_lock = RLock()
_written: object = None
"""What is significant of the state that lies in the file; None where that may be another one."""


def lock() -> RLock:
    """Held by whoever changes or writes the state."""
    return _lock


def new_lock() -> None:
    """In a forked child, where the old one may be held by a thread that is not there."""
    global _lock
    _lock = RLock()


def _folder_in(environment: Mapping[str, str]) -> str | None:
    container = environment.get("GPUMEM_CONTAINER", "")
    if not container or "/" in container or container in (".", ".."):
        return None
    return os.path.join(environment.get("GPUMEM_RUN_PATH") or "/run/gpumem", container)


_folder = _folder_in(os.environ)


def own_file() -> tuple[str, str] | None:
    """Folder and name of this process's files (without `.json`); None where there is no folder."""
    return None if _folder is None else (_folder, f"{os.getpid()}-{start_time()}")


def write(state: State) -> None:
    """Write the file, where the container has a folder for it; others' leftovers go meanwhile.

    Fails at nothing: a program goes on where its container's volume is full or not there. What was
    true before goes then: nothing is known of a process without a file.
    """
    global _written
    written, _written, place = significant(state), None, None
    with kept:
        place = own_file()
        if place is not None:
            _write(state, *place)
        _written = written
    if _written is None and place is not None:
        _unlink(os.path.join(place[0], f"{place[1]}.json"))


def is_written(now: object) -> bool:
    """Whether the file has this, which is `significant`."""
    return _written == now


def _write(state: State, folder: str, name: str) -> None:
    pid, _, start = name.partition("-")
    _make_folder(folder)
    _remove_leftovers(folder)
    names = {"schemaVersion": SCHEMA_VERSION, "pid": int(pid), "startTime": int(start)}
    container = os.path.basename(folder)
    text = dumps({**names, "container": container, **describe(state)}, indent=2) + "\n"
    _replace(os.path.join(folder, f"{name}.json"), text.encode())


def significant(state: State) -> object:
    """What is worth a new file when it changes."""
    gpus = {
        gpu: [amount and amount // TELLING_BYTES for amount in (held.bytes, held.outside_bytes)]
        for gpu, held in state.gpus.items()
    }
    return {**describe(state), "gpus": gpus}


def describe(state: State) -> dict[str, object]:
    """The content of the file behind the names. Unknown is null."""
    return {
        "limitBytes": state.limits.limit_bytes,
        "contextReserveBytes": state.limits.reserve_bytes,
        "processesPerGpu": state.limits.processes,
        "frameworks": [
            {
                "name": name,
                "version": one.version,
                "caps": [{"gpu": gpu, "capBytes": cap} for gpu, cap in sorted(one.caps.items())],
                "notCapped": one.not_capped,
                "capHits": one.cap_hits,
                "reclaim": one.reclaim,
            }
            for name, one in sorted(state.frameworks.items())
        ],
        "servers": [{"name": name, **vars(one)} for name, one in sorted(state.servers.items())],
        "gpus": [
            {"uuid": gpu, "bytes": held.bytes, "outsideBytes": held.outside_bytes}
            for gpu, held in sorted(state.gpus.items())
        ],
        "reclaimed": state.reclaimed and vars(state.reclaimed),
    }


def start_time() -> int:
    """When this process started, in clock ticks after boot: field 22 of proc(5)'s stat."""
    with open("/proc/self/stat", "rb") as file:
        # The second field is the command in parentheses, and may hold anything, `)` as well.
        after_command = file.read().rpartition(b")")[2].split()
    return int(after_command[19])


def _make_folder(folder: str) -> None:
    try:
        os.mkdir(folder)
    except FileExistsError:
        return
    # Processes of one container may run as several users, and one process as one after another
    # (setuid): whoever it is, it must be able to replace its own file, or the old one is believed.
    # Not given to mkdir, because the umask would be applied.
    os.chmod(folder, 0o777)


def _remove_leftovers(folder: str) -> None:
    """Processes that end by _exit or a signal leave their file, and the volume is small."""
    for name in os.listdir(folder):
        pid = name.lstrip(".").partition("-")[0]
        with kept:
            if pid.isdecimal() and _is_gone(int(pid)):
                _unlink(os.path.join(folder, name))


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def _replace(path: str, content: bytes) -> None:
    """Readers see the old content or the new one, and may be of any user."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name.lstrip('.')}")
    # What a process of the same id and start time left can only be our own.
    _unlink(temporary)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(temporary, flags, 0o600)
    try:
        os.fchmod(descriptor, 0o644)
        if os.write(descriptor, content) != len(content):
            raise OSError(f"{temporary} could be written in part only")
        os.rename(temporary, path)
    except BaseException:
        _unlink(temporary)
        raise
    finally:
        os.close(descriptor)


def _unlink(path: str) -> None:
    with kept:
        os.unlink(path)

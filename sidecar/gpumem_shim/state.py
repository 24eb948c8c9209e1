"""What this process tells about itself: one small file that the sidecar reads.

`<run>/<container>/<pid>-<start time>.json`, replaced as a whole at every change. Process ids are
used again, and together with the start time they are not. It is the process's own claim.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from dataclasses import dataclass, field
from json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

SCHEMA_VERSION = 1
LONGEST_VERSION = 64
NOT_STARTED = "NotStarted"
"""The framework has not used a GPU yet; what caps it is waiting for that."""


@dataclass
class Framework:
    """A framework that was imported, and what became of its cap."""

    version: str | None = None
    caps: dict[str, int] = field(default_factory=dict)
    """Bytes by UUID of the GPU or MIG instance."""
    not_capped: str | None = NOT_STARTED
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
class Reclaimed:
    """What became of the last order to give cached memory back."""

    id: str
    result: str
    bytes: int | None = None


@dataclass
class State:
    """All that is told, beside what names the process."""

    frameworks: dict[str, Framework] = field(default_factory=dict)
    gpus: dict[str, Held] = field(default_factory=dict)
    reclaimed: Reclaimed | None = None


own = State()
_lock = allocate_lock()


def record(framework: str, module: ModuleType) -> None:
    """Note that `framework` was imported, and write the file. Raises OSError where it can not."""
    if not own.frameworks:
        os.register_at_fork(after_in_child=_after_fork)
    # In one piece, so that of two threads the later one writes all that is known.
    with _lock:
        own.frameworks[framework] = Framework(_version(module))
        write()


def _after_fork() -> None:
    # The child has the frameworks too, and perhaps a lock that is held by a thread it has not.
    global _lock
    _lock = allocate_lock()
    try:  # noqa: SIM105 (contextlib would be one more import in every user's process)
        write()
    except Exception:
        pass


def _version(module: ModuleType) -> str | None:
    version = getattr(module, "__version__", None)
    return None if version is None else str(version)[:LONGEST_VERSION]


def write() -> None:
    """Write the file, where the container has a folder for it; others' leftovers go meanwhile."""
    container = os.environ.get("GPUMEM_CONTAINER", "")
    if not container or "/" in container or container in (".", ".."):
        return
    folder = os.path.join(os.environ.get("GPUMEM_RUN_PATH") or "/run/gpumem", container)
    pid = os.getpid()
    start = start_time()
    _make_folder(folder)
    _remove_leftovers(folder)
    names = {"schemaVersion": SCHEMA_VERSION, "pid": pid, "startTime": start}
    text = dumps({**names, "container": container, **describe(own)}, indent=2) + "\n"
    _replace(os.path.join(folder, f"{pid}-{start}.json"), text.encode())


def describe(state: State) -> dict[str, object]:
    """The content of the file behind the names. Unknown is null."""
    return {
        "limitBytes": _number("GPUMEM_LIMIT_BYTES"),
        "contextReserveBytes": _number("GPUMEM_CONTEXT_RESERVE_BYTES"),
        "processesPerGpu": _number("GPUMEM_PROCESSES_PER_GPU") or 1,
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
        "gpus": [
            {"uuid": gpu, "bytes": held.bytes, "outsideBytes": held.outside_bytes}
            for gpu, held in sorted(state.gpus.items())
        ],
        "reclaimed": state.reclaimed and vars(state.reclaimed),
    }


def _number(variable: str) -> int | None:
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else None


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
    # Processes of one container may run as several users, and the sidecar as yet another; each
    # may remove only what is its own. Not given to mkdir, because the umask would be applied.
    os.chmod(folder, 0o1777)


def _remove_leftovers(folder: str) -> None:
    """Processes that end by _exit or a signal leave their file, and the volume is small."""
    for name in os.listdir(folder):
        pid = name.lstrip(".").partition("-")[0]
        try:
            if pid.isdecimal():
                os.kill(int(pid), 0)
        except ProcessLookupError:
            _unlink(os.path.join(folder, name))
        except (OSError, OverflowError):
            continue


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
    try:  # noqa: SIM105 (as above)
        os.unlink(path)
    except OSError:
        pass

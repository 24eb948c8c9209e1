"""What this process tells about itself: one small file that the sidecar reads.

`<run>/<container>/<pid>-<start time>.json`, replaced as a whole at every change. Process ids are
used again, and together with the start time they are not. It is the process's own claim.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

SCHEMA_VERSION = 1
LONGEST_VERSION = 64

_frameworks: dict[str, str | None] = {}
_lock = allocate_lock()


def record(framework: str, module: ModuleType) -> None:
    """Note that `framework` was imported, and write the file. Raises OSError where it can not."""
    if not _frameworks:
        os.register_at_fork(after_in_child=_after_fork)
    # In one piece, so that of two threads the later one writes all that is known.
    with _lock:
        _frameworks[framework] = _version(module)
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
    text = dumps(describe(container, pid, start), indent=2) + "\n"
    _replace(os.path.join(folder, f"{pid}-{start}.json"), text.encode())


def describe(container: str, pid: int, start: int) -> dict[str, object]:
    """The content of the file. Unknown is null, and `applied: null` says that nothing is capped."""
    frameworks = sorted(_frameworks.items())
    return {
        "schemaVersion": SCHEMA_VERSION,
        "pid": pid,
        "startTime": start,
        "container": container,
        "frameworks": [{"name": name, "version": version} for name, version in frameworks],
        "limitBytes": _limit_bytes(),
        "applied": None,
    }


def _limit_bytes() -> int | None:
    text = os.environ.get("GPUMEM_LIMIT_BYTES", "")
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

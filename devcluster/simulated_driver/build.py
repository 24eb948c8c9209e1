"""Compiles the simulated driver into the cache: once per source, compiler and machine."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devcluster.failure import ClusterError
from devcluster.gomodules import cache_folder

SOURCES = Path(__file__).parent
LIBRARY = "libnvidia-ml.so.1"
PROGRAM = "simulated-alloc"
SHARED = ("conf.c", "records.c", "limits.c", "holding.c")
"""What both parts need: the state and the allocations in it."""
LIBRARY_ONLY = (
    "nvml.c",
    "devices.c",
    "mig.c",
    "processes.c",
    "limit_calls.c",
    "faults.c",
    "in_process.c",
)
PROGRAM_ONLY = ("simulated_alloc.c",)
WARNINGS = ("-Wall", "-Wextra", "-Werror")
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-g", "-pthread", "-fvisibility=hidden")


@dataclass(frozen=True)
class Built:
    """The two files that a build makes; both lie in one folder."""

    folder: Path

    @property
    def library(self) -> Path:
        return self.folder / LIBRARY

    @property
    def program(self) -> Path:
        return self.folder / PROGRAM


def build() -> Built:
    """The library and simulated-alloc, compiled when the cache lacks them (about 2 s).

    Raises ClusterError when there is no C compiler or the sources do not compile."""
    built = Built(cache_folder() / "simulated-driver" / _key())
    if built.folder.exists():
        return built
    with _build_lock(built.folder.parent):
        if not built.folder.exists():
            _compile_into(built.folder, find_compiler())
    return built


def find_compiler() -> str:
    """$CC, or the first of cc, gcc and clang on PATH."""
    names = [os.environ["CC"]] if os.environ.get("CC") else ["cc", "gcc", "clang"]
    for name in names:
        if shutil.which(name):
            return name
    raise ClusterError(
        f"The simulated NVIDIA driver is C, and there is no compiler: found none of"
        f" {', '.join(names)} on PATH. Install one (Debian, Ubuntu: apt-get install gcc libc6-dev;"
        f" Fedora: dnf install gcc; Alpine: apk add gcc musl-dev) or set CC to yours."
    )


def _key() -> str:
    digest = hashlib.sha256(f"{platform.machine()} {os.environ.get('CC', '')}".encode())
    for path in sorted([*SOURCES.glob("*.[ch]"), Path(__file__)]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@contextmanager
def _build_lock(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _compile_into(folder: Path, compiler: str) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        # Readable for containers of other users; a temporary folder is not.
        ready = Path(scratch) / "ready"
        ready.mkdir(mode=0o755)
        library = [*WARNINGS, "-fPIC", "-shared", f"-Wl,-soname,{LIBRARY}"]
        _run(compiler, [*library, "-o", str(ready / LIBRARY)], [*SHARED, *LIBRARY_ONLY])
        _compile_program(compiler, ready / PROGRAM)
        ready.rename(folder)


def _compile_program(compiler: str, target: Path) -> None:
    """Static where the C library can be linked so: then it runs in any container's image."""
    sources = [*SHARED, *PROGRAM_ONLY]
    try:
        _run(compiler, [*WARNINGS, "-static", "-o", str(target)], sources)
    except ClusterError:
        _run(compiler, [*WARNINGS, "-o", str(target)], sources)


def _run(compiler: str, options: Sequence[str], sources: Sequence[str]) -> None:
    command = [compiler, *FLAGS, *options, *(str(SOURCES / name) for name in sources)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise ClusterError(
            f"The simulated NVIDIA driver does not compile: {compiler} ended with"
            f" {done.returncode}:\n{done.stderr.strip()[-2000:]}\n"
            f"Where a header is missing, install the C library's development files"
            f" (Debian, Ubuntu: apt-get install libc6-dev)."
        )

"""Builds programs from their modules into the cache: once, whole, and with visible progress."""

from __future__ import annotations

import fcntl
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from devcluster.failure import ClusterError, log_tail
from devcluster.gomodules import GoModule, Program, cache_folder
from devcluster.gotoolchain import find_go, go_environment
from devcluster.progress import say

HEARTBEAT_SECONDS = 20.0
"""A build says that it is alive this often; CI systems end jobs that stay silent."""


def built_path(program: Program) -> Path:
    """Where the cache keeps this program, whether or not it has been built."""
    return program.module.binary_folder / program.name


def build(programs: Sequence[Program]) -> None:
    """Build those of the programs that the cache lacks."""
    if all(built_path(program).exists() for program in programs):
        return
    with _build_lock():
        # Looked at again: the process that held the lock before us may have built them.
        missing = [program for program in programs if not built_path(program).exists()]
        if missing:
            _announce(missing)
        for program in missing:
            _build_program(program)


def _announce(missing: Sequence[Program]) -> None:
    minutes = max(1, round(sum(program.typical_seconds for program in missing) / 60))
    names = ", ".join(program.name for program in missing)
    say(f"building {names}: about {minutes} min with 2 cores and an empty build cache")


@contextmanager
def _build_lock() -> Iterator[None]:
    """Lets one process build at a time: two would only take each other's cores."""
    path = cache_folder() / "bin" / ".lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is building the binaries: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_program(program: Program) -> None:
    module = program.module
    go = find_go(module)
    module.binary_folder.mkdir(parents=True, exist_ok=True)
    say(f"building {program.name} {_dotted(module)} (about {program.typical_seconds} s)")
    # The temporary folder is a neighbour of the target, so that the rename is atomic.
    with tempfile.TemporaryDirectory(prefix=".building-", dir=module.binary_folder) as scratch:
        output = Path(scratch) / program.name
        log = Path(scratch) / "log"
        command = [str(go), "build", *module.build_flags, "-o", str(output), program.package]
        started = time.monotonic()
        returncode = _run_with_heartbeat(program, command, log)
        if returncode != 0:
            raise ClusterError(
                f"{program.name} could not be built: go ended with status {returncode}:\n"
                f"{log_tail(log)}\n"
                "  If modules could not be downloaded, check `go env GOPROXY` and the network,"
                " then run `python -m devcluster build` again."
            )
        output.rename(built_path(program))
    say(f"built {program.name} in {time.monotonic() - started:.0f} s")


def _dotted(module: GoModule) -> str:
    return ".".join(map(str, module.version))


def _run_with_heartbeat(program: Program, command: Sequence[str], log: Path) -> int:
    """Run a build to its end; returns its exit status. Its output goes to `log`."""
    started = time.monotonic()
    with (
        log.open("w") as output,
        subprocess.Popen(
            command, cwd=program.module.folder, env=go_environment(), stdout=output, stderr=output
        ) as process,
    ):
        while True:
            try:
                return process.wait(HEARTBEAT_SECONDS)
            except subprocess.TimeoutExpired:
                say(f"  still building {program.name}, {time.monotonic() - started:.0f} s")
            except BaseException:
                process.terminate()
                raise

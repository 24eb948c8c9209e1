"""The list of running clusters of this user, one file each in the cache folder."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from devcluster.failure import ClusterError
from devcluster.gomodules import cache_folder

STOP_SECONDS = 60.0
"""Far more than the usual few seconds: a holder has more to end than the cluster."""


@dataclass(frozen=True)
class Record:
    """One cluster: its folder, and the keeper process that ends with it."""

    root: str
    url: str
    pid: int
    process_start: str
    """The start time of `pid`, since the kernel gives a process id to others later."""
    kept: bool
    """It runs until `stop`, and not until its caller ends."""
    holder_pid: int | None = None
    holder_start: str | None = None
    """The process that ends a kept cluster, with what else it started, when it is terminated."""

    @property
    def running(self) -> bool:
        return process_start(self.pid) == self.process_start


def process_start(pid: int) -> str | None:
    """The start time of a process in clock ticks since boot, or None when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is a name in parentheses that may itself hold blanks and parentheses.
    state, *fields = stat.rpartition(")")[2].split()
    return None if state == "Z" else fields[18]


def write_record(record: Record) -> None:
    path = _path(record.pid)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(record)))
    partial.rename(path)


def remove_record(pid: int) -> None:
    _path(pid).unlink(missing_ok=True)


def records() -> Iterator[Record]:
    """The clusters of this user, including those whose keeper was killed."""
    for path in sorted(_path(0).parent.glob("*.json")):
        try:
            yield Record(**json.loads(path.read_text()))
        except FileNotFoundError:
            continue  # The cluster ended while we looked.


def find_record(root: Path) -> Record:
    wanted = str(root.resolve())
    for record in records():
        if record.root == wanted:
            return record
    raise ClusterError(
        f"No cluster of this user is in {root}. `python -m devcluster list` shows all."
    )


def stop_cluster(record: Record) -> None:
    """End a cluster, and wait until its processes and its folder are gone."""
    if record.holder_pid is not None:
        _terminate("holder", record.holder_pid, record.holder_start, record.root)
    _terminate("keeper", record.pid, record.process_start, record.root)
    # Nothing is left to do, unless the keeper was already dying of something else.
    _forget(record)


def _terminate(what: str, pid: int, start: str | None, root: str) -> None:
    """Terminate a process, unless its id is another one's by now, and wait for its end."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        # Looked at after the process was pinned: from here on it can not be another one's id.
        if process_start(pid) != start:
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGTERM)
        if not select.select([pidfd], [], [], STOP_SECONDS)[0]:
            raise ClusterError(
                f"The {what} of {root} (process {pid}) did not end within {STOP_SECONDS:.0f} s."
                " Kill that process; the components end with it."
            )
    finally:
        os.close(pidfd)


def _forget(record: Record) -> None:
    """Remove what a killed keeper left; the kernel has ended its components with it."""
    shutil.rmtree(record.root, ignore_errors=True)
    remove_record(record.pid)


def _path(pid: int) -> Path:
    return cache_folder() / "clusters" / f"{pid}.json"

"""The one exception of this package, and the log excerpt that its messages quote."""

from __future__ import annotations

from pathlib import Path


class ClusterError(Exception):
    """A cluster or one of its binaries could not be had; the message says why and what to do."""


def log_tail(log: Path, *, lines: int = 15) -> str:
    """The last lines of a log, indented for a message; says so when there are none."""
    try:
        text = log.read_text(errors="replace").strip()
    except FileNotFoundError:
        text = ""
    if not text:
        return f"    ({log.name} is empty)"
    return "\n".join(f"    {line}" for line in text.splitlines()[-lines:])

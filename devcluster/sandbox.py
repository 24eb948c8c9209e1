"""PID namespaces as pods have them, for root and, where the kernel allows it, for everybody."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

_NEW = ("--pid", "--fork", "--mount-proc", "--kill-child")


def new_namespace() -> tuple[str, ...]:
    """Runs a command as the first process of a namespace of its own."""
    return ("unshare", *_NEW) if os.geteuid() == 0 else ("unshare", "--user", "-r", *_NEW)


def inside(pid: int) -> tuple[str, ...]:
    """Runs a command in the namespaces of a process."""
    own = () if os.geteuid() == 0 else ("--user", "--preserve-credentials")
    return ("nsenter", "--target", str(pid), *own, "--pid", "--mount")


def child_of(pid: int) -> int:
    """The PID, in this namespace, of the one child of `unshare --fork`."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


@cache
def why_not() -> str:
    """Empty where this user may make PID namespaces; else the reason."""
    try:
        done = subprocess.run([*new_namespace(), "true"], capture_output=True, text=True)
    except FileNotFoundError:
        return "unshare (util-linux) is not installed"
    return "" if done.returncode == 0 else f"unshare fails here: {done.stderr.strip()}"

"""What drivers of some age tell to a caller in a container."""

from __future__ import annotations

import re
from typing import Literal

PIDS_OF_CALLER = (535, 113, 1)
"""Before, every caller got the node's PIDs of every process."""
MEMORY_OF_CALLER = (565, 57, 1)
"""Before, a caller in a child PID namespace got its own PIDs with 0 bytes. Both after the kernel
modules by tag (open-gpu-kernel-modules, pull request 614)."""

Era = Literal["HostPids", "DriverHidesMemory", "Right"]


def parse(text: str) -> tuple[int, int, int]:
    """Numbers of a driver's version, such as 580.159.03; what is missing counts as 0.

    A text that is no version counts as the newest: new drivers are right.
    """
    found = re.match(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?", text)
    if not found:
        return (2**31, 0, 0)
    major, minor, patch = (int(part or 0) for part in found.groups())
    return major, minor, patch


def era_of(text: str | None, *, child_namespace: bool) -> Era:
    """What a process list means to a caller; on the node itself every driver is right."""
    if not child_namespace or text is None:
        return "Right"
    version = parse(text)
    if version < PIDS_OF_CALLER:
        return "HostPids"
    return "DriverHidesMemory" if version < MEMORY_OF_CALLER else "Right"

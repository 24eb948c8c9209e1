"""The first process of a node's namespaces: mounts its folders, starts its components, buries.

When it ends, in whatever way, the kernel kills every other process of the node and takes its
mounts and its network away. It ends by itself when a component does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SOCKET_SECONDS = 60.0
POLL_SECONDS = 0.02


def main(pipe: str) -> int:
    """Run what the JSON document in `pipe` says; returns only when a component has ended."""
    with open(pipe) as source:
        plan: dict[str, Any] = json.loads(source.readline())
    # Containers see what is mounted for them later; this machine sees nothing of it.
    _mount("--make-rshared", "/")
    for source, target in plan["binds"]:
        _mount("--bind", source, target)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    names: dict[int, str] = {}
    for component in plan["components"]:
        names[_start(component, plan["path"])] = component["name"]
        if component["socket"] and (ended := _await_socket(Path(component["socket"]), names)):
            return _report(ended, names)
    while True:
        pid, status = os.wait()
        if pid in names:
            return _report((pid, status), names)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def _start(component: dict[str, Any], path: str) -> int:
    with open(component["log"], "ab") as log:
        process = subprocess.Popen(
            component["command"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={"PATH": path, "HOME": "/root"},
        )
    # Waited for by os.wait() alone, among all the orphans of the node.
    process.returncode = 0
    return process.pid


def _await_socket(path: Path, names: dict[int, str]) -> tuple[int, int] | None:
    """Wait for a component's socket; returns (pid, wait status) of a component that ended."""
    deadline = time.monotonic() + SOCKET_SECONDS
    while not path.is_socket():
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid in names:
            return pid, status
        if time.monotonic() > deadline:
            sys.exit(f"{path} was not there after {SOCKET_SECONDS:.0f} s")
        time.sleep(POLL_SECONDS)
    return None


def _report(ended: tuple[int, int], names: dict[int, str]) -> int:
    pid, status = ended
    print(f"{names[pid]} ended with status {os.waitstatus_to_exitcode(status)}", flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

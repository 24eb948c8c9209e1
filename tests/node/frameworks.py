"""Pods with a simulated framework under the shim, and further processes in them."""

from __future__ import annotations

import base64
import json
import select
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from endtoend.team import Team
from gpu_container import FRAMEWORKS, libcuda_folder
from node.workload import restricted_pod_spec, run_pod

LIBRARY = "/library"
ANSWER_SECONDS = 60.0
HOLDS = """
import sys
sys.path.insert(0, "/library")
import torch
torch.allocate(512)
print("holding", flush=True)
sys.stdin.read()
"""
"""A program that holds 1030 MiB, its context included, until its input ends."""
TRAINS = """
import gpu, signal, torch
torch.allocate(2048)
signal.signal(signal.SIGUSR1, lambda *_: gpu.beside(7000))
signal.signal(signal.SIGUSR2, lambda *_: gpu.beside(-7000))
open("/tmp/pid", "w").write(str(__import__("os").getpid()))
while True:
    signal.pause()
"""
"""Holds 2566 MiB, its context included; at a signal 7000 MiB more, outside of torch, or less."""
IDLES = "import time; time.sleep(3600)"
LIBRARY_VARIABLES = {"PYTHONPATH": LIBRARY, "LD_LIBRARY_PATH": LIBRARY}


def run_with_frameworks(team: Team, name: str, program: str) -> dict[str, Any]:
    """A pod whose Python finds a simulated torch; as it is stored when it is ready."""
    files = {"libcuda.so.1": libcuda_folder() / "libcuda.so.1", "gpu.py": FRAMEWORKS / "gpu.py"}
    for path in sorted((FRAMEWORKS / "torch").rglob("*.py")):
        files[str(path.relative_to(FRAMEWORKS))] = path
    keys = {path: path.replace("/", "-") for path in files}
    data = {
        keys[path]: base64.b64encode(file.read_bytes()).decode() for path, file in files.items()
    }
    metadata = {"name": "frameworks"}
    raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data}
    answer = team.kubectl("apply", "-f", "-", input=json.dumps(raw))
    assert "configured" in answer or "created" in answer or "unchanged" in answer, answer
    spec = restricted_pod_spec(program, env=LIBRARY_VARIABLES)
    items = [{"key": key, "path": path} for path, key in keys.items()]
    spec["volumes"] = [{"name": "library", "configMap": {"name": "frameworks", "items": items}}]
    return run_pod(team, name, spec)


@contextmanager
def process_in(team: Team, pod: str, *command: str, container: str = "main") -> Iterator[None]:
    """A process by `kubectl exec`, from its first line of output to the end of its input."""
    where = ["exec", "-i", pod, "-n", team.name, "-c", container, "--"]
    process = team.cluster.start_kubectl(*where, *command)
    assert process.stdout is not None
    try:
        ready, _, _ = select.select([process.stdout], [], [], ANSWER_SECONDS)
        line = process.stdout.readline() if ready else ""
        if "holding" not in line:
            process.kill()
            raise AssertionError(f"{command} said {line!r} {process.communicate()[0]!r}")
        yield
    finally:
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """`end` is for simulated-alloc; a program that reads its input to the end sees that it ends."""
    try:
        process.communicate("end\n", timeout=ANSWER_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def allocation(mib: int, *options: str) -> Sequence[str]:
    """A program in C, on the first card that its container was given, or the node's first."""
    command = f"exec simulated-alloc --gpu ${{NVIDIA_VISIBLE_DEVICES:-0}} --mib {mib}"
    return ["sh", "-c", " ".join([command, *options])]


def processes_in(pod: dict[str, Any], command: str) -> list[int]:
    """PIDs on this machine of a command in the pod's container `main`."""
    [main] = pod["status"]["containerStatuses"]
    identity = main["containerID"].partition("://")[2]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            named = (folder / "comm").read_text().strip() == command
            if named and identity in (folder / "cgroup").read_text():
                found.append(int(folder.name))
        except OSError:
            continue
    return found

"""A client of MPS: the pinned limit that admission sets holds it, and is named as what holds it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpu_e2e.place import Place
from gpu_e2e.refusals import NotSeenError, answered, until
from gpu_e2e.row import Row, same, told
from gpu_e2e.stage import GIB, MIB, Stage

LIMIT = 8 * GIB
CONTROL = "nvidia-cuda-mps-control"
CLIENT = "print(json.dumps({'taken': card.take_as_mps_client()}), flush=True)\ncard.stay()"
MOST_SECONDS = 20.0


def mps(stage: Stage) -> Iterator[Row]:
    try:
        with _daemon(stage.place) as pipes:
            yield from _client(stage, pipes)
    except _NoDaemonError as reason:
        yield told("a client of MPS", f"not run: {reason}")


class _NoDaemonError(Exception):
    """MPS can not run here."""


def _client(stage: Stage, pipes: Path | None) -> Iterator[Row]:
    team = stage.team("mps", limits={"default": "8Gi"}, monitoring={"mode": "NodeAgent"})
    raw = team.spec("client", CLIENT)
    if pipes is not None:
        _lead_to(raw, pipes)
    uid = team.create(raw)
    team.says("client")
    try:
        until(lambda: team.enforcer("client") == "MPS", "MPS is named")
    except NotSeenError as error:
        raise NotSeenError(f"{error}, but {team.enforcer('client')}; {_told_by(pipes)}") from None
    yield same("a client of MPS: limit held by", "MPS", answered(lambda: team.enforcer("client")))
    held = team.look().of_pod(uid)
    seen = f"{held.peak / MIB:.0f} of {LIMIT // MIB} MiB"
    yield Row("a client of MPS: NVML peak", "never over", seen, 0 < held.peak <= LIMIT)
    yield told("a client of MPS: usable", f"{100 * held.peak / LIMIT:.1f} %")


def _lead_to(raw: dict[str, Any], pipes: Path) -> None:
    """As NVIDIA's device plugin does for MPS: its pipes, and shared memory with the server."""
    spec = raw["spec"]
    spec["hostIPC"] = True
    # A server of MPS serves one user, and a client that may not open its pipes runs without it.
    spec["securityContext"] = {"runAsUser": 0}
    spec["volumes"] += [
        {"name": "mps", "hostPath": {"path": str(pipes)}},
        {"name": "shm", "hostPath": {"path": "/dev/shm"}},
    ]
    [main] = spec["containers"]
    main["volumeMounts"] += [
        {"name": "mps", "mountPath": str(pipes)},
        {"name": "shm", "mountPath": "/dev/shm"},
    ]
    main["env"].append({"name": "CUDA_MPS_PIPE_DIRECTORY", "value": str(pipes)})


def _told_by(pipes: Path | None) -> str:
    """What the daemon left in its folder."""
    if pipes is None:
        return "no daemon"
    logs = [one.read_text(errors="replace")[-600:] for one in sorted(pipes.glob("*.log"))]
    return f"in {pipes}: {sorted(one.name for one in pipes.iterdir())}; {' | '.join(logs)}"


@contextmanager
def _daemon(place: Place) -> Iterator[Path | None]:
    """The folder of its pipes; the simulated driver needs none."""
    if place.simulated:
        yield None
        return
    control = shutil.which(CONTROL)
    if control is None:
        raise _NoDaemonError(f"there is no {CONTROL}")
    with tempfile.TemporaryDirectory(prefix="gpumem-mps-") as folder:
        variables = [f"CUDA_MPS_{kind}_DIRECTORY={folder}" for kind in ("PIPE", "LOG")]
        command = [*place.node.inside, "env", *variables, control]
        try:
            # It forks, and its children keep what it was given as output.
            done = subprocess.run(
                [*command, "-d"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=MOST_SECONDS,
            )
            if done.returncode != 0:
                raise _NoDaemonError(f"{CONTROL} -d ended with {done.returncode}")
            yield Path(folder)
        except subprocess.TimeoutExpired:
            raise _NoDaemonError(f"{CONTROL} -d did not return") from None
        finally:
            quit_ = "quit -t 5\n"
            subprocess.run(command, input=quit_, text=True, capture_output=True, timeout=60)

"""The sidecar's and the agent's own programs as processes, and a container's group."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.overuse_team import Pod, Team
from bench.sidecar import SIDECAR
from devcluster.roleprocess import free_ports
from devcluster.sandbox import inside
from devcluster.simulated_driver import environment

_PROGRAM = (sys.executable, "-m", "gpumem_sidecar")
_GROUP_ROOTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))


@contextmanager
def sidecar(
    team: Team, state: Path, pod: Pod, *, program: int, interval_seconds: float
) -> Iterator[None]:
    """Of a pod whose program is the first process of a PID namespace."""
    variables = {"GPUMEM_PID_NAMESPACE": "Pod", "GPUMEM_POD_UID": pod.uid}
    token = team.token(pod.name)
    with _running((*inside(program), *_PROGRAM), team, state, token, variables, interval_seconds):
        yield


@contextmanager
def agent(team: Team, state: Path, *, interval_seconds: float) -> Iterator[None]:
    """Of the team's node; it may end processes."""
    name, where = f"agent-{team.name}", team.operator.namespace
    account = f"{team.operator.release}-agent"
    team.add_agent(name, account=account)
    token = team.token(name, account=account, namespace=where)
    variables = {"GPUMEM_AGENT_ACTIONS": "Kill", "GPUMEM_POD_RESOURCES": "/nowhere"}
    with _running((*_PROGRAM, "--agent"), team, state, token, variables, interval_seconds):
        yield


@contextmanager
def _running(
    command: Sequence[str],
    team: Team,
    state: Path,
    token: str,
    variables: dict[str, str],
    interval_seconds: float,
) -> Iterator[None]:
    [port] = free_ports(1)
    given = {
        "PYTHONPATH": str(SIDECAR),
        "GPUMEM_HEALTH_PORT": str(port),
        "GPUMEM_INTERVAL_SECONDS": str(interval_seconds),
        "GPUMEM_RUN_PATH": str(team.run_folder),
    }
    told = team.report_environment(token)
    everything = environment(state) | told | given | variables
    with (
        (team.folder / "sender.log").open("ab") as log,
        subprocess.Popen(command, env=everything, stdout=log, stderr=log) as process,
    ):
        try:
            yield
        finally:
            process.terminate()


def why_no_group() -> str:
    """Empty where a container's group can be made here; else the reason."""
    root = _root()
    if root is None:
        return "there is no cgroup v2"
    return "" if os.access(root, os.W_OK) else f"{root} can not be written, which takes root"


@contextmanager
def in_container_group(pid: int, pod: Pod) -> Iterator[None]:
    """Put a process into the group that a container of the pod would have."""
    root = _root()
    assert root is not None
    folder = root / f"gpumem-{pod.uid}" / "kubepods" / f"pod{pod.uid}" / pod.container_id
    folder.mkdir(parents=True)
    try:
        (folder / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        # One that has ended is in no group any more.
        with contextlib.suppress(ProcessLookupError):
            (root / "cgroup.procs").write_text(str(pid))
        for one in [folder, *folder.parents][:4]:
            one.rmdir()


def _root() -> Path | None:
    return next((one for one in _GROUP_ROOTS if (one / "cgroup.controllers").exists()), None)

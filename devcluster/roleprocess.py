"""Processes of the operator on this machine, where a cluster would run pods."""

from __future__ import annotations

import http.client
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from devcluster.components import Component
from devcluster.failure import ClusterError, log_tail
from devcluster.packagepath import python_path
from devcluster.ports import HeldPort

SOURCES = Path(__file__).parent.parent / "operator"
READY_SECONDS = 180.0
"""The usual is a second or two; a busy CI machine may take its time."""
TERMINATE_SECONDS = 10.0
RESTART_SECONDS = 10.0
"""Between two starts of what ends by itself, as a kubelet waits at first."""
PROBE_SECONDS = 0.05


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody uses at present."""
    held = [HeldPort() for _ in range(count)]
    for port in held:
        port.close()
    return [port.number for port in held]


class RoleProcess:
    """One replica of a role; it ends, at the latest, with the thread that started it."""

    def __init__(self, name: str, arguments: Sequence[str], *, log: Path, health_port: int) -> None:
        # `env` becomes Python, so the process id is the same. The sources are named, so that it
        # does not matter whether the package is installed for this interpreter.
        path = f"PYTHONPATH={SOURCES}{os.pathsep}{python_path()}"
        # One that is killed leaves its temporary files where the installation's own are removed.
        folder = f"TMPDIR={log.parent}"
        command = ["env", path, folder, sys.executable, "-m", "gpumem_operator"]
        self._component = Component(name, [*command, *arguments], log)
        self._health_port = health_port
        self._started = time.monotonic()
        self.pid = self._component.pid

    @property
    def running(self) -> bool:
        return self._component.running

    @property
    def age_seconds(self) -> float:
        """Since its start."""
        return time.monotonic() - self._started

    @property
    def ready(self) -> bool:
        return self.running and self._ask_readiness()[0] == 200

    def obituary(self) -> str:
        """How it ended, with the end of its log."""
        return self._component.obituary()

    def close(self) -> None:
        """Reap the ended process."""
        self._component.close()

    def wait_until_ready(self) -> None:
        """Raises ClusterError when the process ends, or says for too long that it is not ready."""
        deadline = time.monotonic() + READY_SECONDS
        answer = "nothing"
        while time.monotonic() < deadline:
            # The end of the process is an event; readiness can only be asked for.
            if select.select([self._component.pidfd], [], [], PROBE_SECONDS)[0]:
                raise ClusterError(self._component.obituary())
            status, answer = self._ask_readiness()
            if status == 200:
                return
        raise ClusterError(
            f"{self._component.name} was not ready within {READY_SECONDS:.0f} s; /readyz says:"
            f" {answer.strip()}\nThe end of its log:\n{log_tail(self._component.log)}"
        )

    def stop(self, number: signal.Signals) -> None:
        """Send the signal and wait for the end; a process that does not heed it is killed."""
        self._component.signal(number)
        if not select.select([self._component.pidfd], [], [], TERMINATE_SECONDS)[0]:
            self._component.signal(signal.SIGKILL)
        self._component.close()

    def _ask_readiness(self) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self._health_port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            response = connection.getresponse()
            return response.status, response.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error)
        finally:
            connection.close()


def run_role(name: str, arguments: Sequence[str]) -> None:
    """Run a role that ends by itself. Raises ClusterError, with what it said, where it failed."""
    environment = {**os.environ, "PYTHONPATH": f"{SOURCES}{os.pathsep}{python_path()}"}
    command = [sys.executable, "-m", "gpumem_operator", f"--role={name}", *arguments]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise ClusterError(f"role {name} ended with {ended.returncode}:\n{ended.stderr}")


class Role:
    """All replicas of one role, each with ports of its own that it keeps over restarts."""

    def __init__(self, name: str, *, replicas: int, folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self.ports = free_ports(replicas)
        self.health_ports = free_ports(replicas)
        self.arguments: Sequence[str] = ()
        """What every replica is started with; each adds its ports."""
        self._processes: dict[int, RoleProcess] = {}

    @property
    def pids(self) -> list[int]:
        """Those of the replicas that run, in the order of their ports."""
        running = sorted(self._processes.items())
        return [process.pid for _, process in running if process.running]

    @property
    def ready(self) -> bool:
        """Whether a replica says so."""
        return any(process.ready for process in self._processes.values())

    def pid_at(self, port: int) -> int:
        """That of the latest process at a port. Raises KeyError where none was started."""
        return self._processes[self.ports.index(port)].pid

    def spawn(self) -> None:
        """Start the replicas that do not run."""
        for replica, port in enumerate(self.ports):
            if (old := self._processes.get(replica)) and old.running:
                continue
            self._start(replica, port)

    def revive(self) -> list[str]:
        """Start again what ended by itself, as a kubelet does; how each ended."""
        told = []
        for replica, process in sorted(self._processes.items()):
            if process.running or process.age_seconds < RESTART_SECONDS:
                continue
            told.append(process.obituary())
            process.close()
            self._start(replica, self.ports[replica])
        return told

    def _start(self, replica: int, port: int) -> None:
        health_port = self.health_ports[replica]
        own = [f"--port={port}", f"--health-port={health_port}"]
        self._processes[replica] = RoleProcess(
            self.name, [*self.arguments, *own], log=self.log, health_port=health_port
        )

    def wait_until_ready(self) -> None:
        for process in self._processes.values():
            process.wait_until_ready()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End all replicas and wait for their end."""
        while self._processes:
            _, process = self._processes.popitem()
            process.stop(number)

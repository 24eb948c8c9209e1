"""One pod of a simulated node: a simulated program and the real sidecar, as processes here.

The program holds memory of the node's simulated card. The sidecar is the product's own, with the
environment that admission gave it and a token that is bound to the pod. Both are in a PID namespace
of their own, as in a pod with shareProcessNamespace.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devcluster.roleprocess import free_ports
from devcluster.sandbox import child_of, inside, new_namespace
from devcluster.simulated_driver import Allocation, environment
from devcluster.simulated_training import Training

SIDECAR_SOURCES = Path(__file__).parent.parent / "sidecar"
SIDECAR = "gpumem-sidecar"
SHIM = "gpumem-shim"
PROGRAM = "simulation/program"
"""`torch`: one whose allocator the shim caps; `torch-uncapped`: one of whose limit the shim is not
told. Without it: one that no shim knows."""
END_SECONDS = 5.0


class SimulatedPod:
    """Runs from construction to `end`. `driver` is the state folder of the node's driver."""

    def __init__(
        self, pod: Mapping[str, Any], mib: int, *, token: str, driver: Path, folder: Path
    ) -> None:
        self._folder = folder
        (folder / "run").mkdir()
        container = pod["spec"]["containers"][0]
        kind = pod["metadata"].get("annotations", {}).get(PROGRAM)
        if kind in ("torch", "torch-uncapped"):
            self._program: Training | Allocation = Training(
                container, mib, driver=driver, folder=folder, capped=kind == "torch"
            )
            inner = child_of(self._program.pid)
        else:
            self._program = Allocation(driver, "0", mib, prefix=new_namespace())
            inner = child_of(self._program.pid)
            if has_shim(pod):
                tell_as_the_shim_would(
                    folder / "run", str(container["name"]), inner, inside=self._program.pid_inside
                )
        (folder / "token").write_text(token)
        with (folder / "sidecar.log").open("ab") as log:
            self._sidecar = subprocess.Popen(
                [*inside(inner), sys.executable, "-m", "gpumem_sidecar"],
                env=environment(driver) | self._environment(pod),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def hold(self, mib: int) -> None:
        """Have the program hold so much. Raises ClusterError where the card has not enough."""
        self._program.set(mib)

    def end(self) -> None:
        self._program.kill()
        # The kernel ends all of a PID namespace with its first process.
        self._sidecar.wait(END_SECONDS)

    def _environment(self, pod: Mapping[str, Any]) -> dict[str, str]:
        """The sidecar's own, with this machine's paths instead of a container's."""
        [sidecar] = [one for one in pod["spec"]["initContainers"] if one["name"] == SIDECAR]
        given = {
            one["name"]: one.get("value", str(pod["metadata"]["uid"])) for one in sidecar["env"]
        }
        here = {
            "PYTHONPATH": str(SIDECAR_SOURCES),
            "GPUMEM_REPORT_TOKEN_FILE": str(self._folder / "token"),
            "GPUMEM_RUN_PATH": str(self._folder / "run"),
            "GPUMEM_HEALTH_PORT": str(free_ports(1)[0]),
        }
        return given | here


def has_shim(pod: Mapping[str, Any]) -> bool:
    """Whether admission gave the pod the container that brings the shim."""
    return any(one["name"] == SHIM for one in pod["spec"].get("initContainers") or ())


def tell_as_the_shim_would(run: Path, container: str, pid: int, *, inside: int) -> None:
    """Say in the pod's run folder which container a process is in that is no Python with a shim in
    it. `inside` is its PID in its own namespace."""
    start = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    state = {
        "schemaVersion": 1,
        "pid": inside,
        "startTime": start,
        "container": container,
        "frameworks": [],
    }
    place = run / container
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{inside}-{start}.json").write_text(json.dumps(state))

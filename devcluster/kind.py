"""A cluster of kind (Kubernetes in Docker or Podman) whose node has the simulated NVIDIA driver.

kind and its engine are found on PATH; nothing is installed. The cluster is kind's own: it ends with
`kind delete cluster`, and until then needs the folder with the driver's state.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from devcluster.binaries import find_binaries
from devcluster.commands import Commands
from devcluster.failure import ClusterError
from devcluster.gobuild import build, built_path
from devcluster.gomodules import NODE_PROGRAMS, cache_folder
from devcluster.node import driver as containers
from devcluster.simulated_driver import Driver, create_state, write_driver
from devcluster.simulated_driver import build as build_driver

NAME = "gpumem-demo"
NODE = f"{NAME}-control-plane"
CONFIGURATION = Path(__file__).with_name("kind.yaml")
INSIDE = Path("/simulated-driver")
"""Where the node finds the folder of the driver, see the configuration."""
ENGINES = ("docker", "podman")
CREATE_SECONDS = 600.0


@dataclass(frozen=True)
class Tools:
    """kind, and the engine that it is to use."""

    kind: str
    engine: str

    def run(self, program: str, *arguments: str | Path) -> str:
        """What a program prints; raises ClusterError where it fails."""
        done = subprocess.run(
            [program, *arguments],
            env={**os.environ, "KIND_EXPERIMENTAL_PROVIDER": self.engine},
            capture_output=True,
            text=True,
            timeout=CREATE_SECONDS,
        )
        if done.returncode != 0:
            raise ClusterError(
                f"`{Path(program).name} {' '.join(map(str, arguments))}` ended with status"
                f" {done.returncode}:\n{done.stderr.strip()[-2000:]}"
            )
        return done.stdout.strip()


def find_tools() -> Tools:
    """kind and an engine that answers. Raises ClusterError that says what to install."""
    engines = [name for name in ENGINES if shutil.which(name)]
    working = next((name for name in engines if _answers(name)), None)
    if working is None:
        state = "does not answer (`docker info` says why)" if engines else "is missing"
        raise ClusterError(
            f"kind runs nodes as containers, and {' or '.join(engines or ENGINES)} {state}. Install"
            " and start Docker or Podman (Debian, Ubuntu: apt-get install docker.io or podman);"
            " `make demo` needs neither."
        )
    kind = shutil.which("kind")
    if kind is None:
        raise ClusterError(
            "kind is missing. Install it, e.g. `go install sigs.k8s.io/kind@v0.33.0`, and put it on"
            " PATH; `make demo` does without."
        )
    return Tools(kind, working)


def _answers(engine: str) -> bool:
    return subprocess.run([engine, "info"], capture_output=True).returncode == 0


class KindCluster(Commands):
    """The one cluster of this name. Use `KindCluster.create`."""

    node = NODE

    def __init__(self, tools: Tools, folder: Path) -> None:
        super().__init__(folder / "kubeconfig", root=folder, binaries=find_binaries())
        self._tools = tools

    @classmethod
    def create(cls, driver: Driver) -> Self:
        """Create it and wait until it is ready. Raises ClusterError where there is one already."""
        tools = find_tools()
        cluster = cls(tools, cache_folder() / "kind")
        if NAME in tools.run(tools.kind, "get", "clusters").split():
            raise ClusterError(
                f"There is a kind cluster {NAME} already: `kind delete cluster --name {NAME}`."
            )
        shutil.rmtree(cluster.root, ignore_errors=True)
        shared = cluster.root / "simulated-driver"
        _lay_out_driver(shared, driver)
        configuration = cluster.root / "kind.yaml"
        configuration.write_text(CONFIGURATION.read_text().replace("FOLDER", str(shared)))
        try:
            cluster._create(configuration)
            pid = tools.run(tools.engine, "inspect", "--format={{.State.Pid}}", NODE)
            write_driver(shared / "state", driver, node_process=int(pid))
        except BaseException:
            cluster.delete()
            raise
        return cluster

    def load_images(self, archives: Sequence[Path]) -> None:
        for archive in archives:
            self._kind("load", "image-archive", archive, f"--name={NAME}")

    def delete(self) -> None:
        """Delete the cluster; does nothing where there is none."""
        self._kind("delete", "cluster", f"--name={NAME}")
        shutil.rmtree(self.root, ignore_errors=True)

    def _create(self, configuration: Path) -> None:
        files = [f"--config={configuration}", f"--kubeconfig={self.kubeconfig}"]
        self._kind("create", "cluster", f"--name={NAME}", *files, "--wait=180s")

    def _kind(self, *arguments: str | Path) -> None:
        self._tools.run(self._tools.kind, *arguments)


def _lay_out_driver(folder: Path, driver: Driver) -> None:
    """What the node sees at INSIDE: library, program, state, and the specification naming them."""
    create_state(folder / "state", driver)
    built = build_driver()
    for path in (built.library, built.program):
        shutil.copy2(path, folder / path.name)
    [ctr] = [program for program in NODE_PROGRAMS if program.name == "ctr"]
    build([ctr])
    default = subprocess.run(
        [built_path(ctr), "oci", "spec"], check=True, capture_output=True, text=True
    ).stdout
    specification = containers.base_specification(
        default,
        library=INSIDE / built.library.name,
        program=INSIDE / built.program.name,
        state=INSIDE / "state",
    )
    (folder / "base-specification.json").write_text(specification)

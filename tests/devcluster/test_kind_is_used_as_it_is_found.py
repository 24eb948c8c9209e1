"""kind and its engine are looked for on PATH; stand-ins write down what they were asked to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cluster_processes import REPOSITORY, write_script
from devcluster.failure import ClusterError
from devcluster.kind import CONFIGURATION, INSIDE, NODE, KindCluster, find_tools
from devcluster.simulated_driver import Driver, numbered_device

DRIVER = Driver((numbered_device(0),))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that has the programs in this folder, and no others."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_without_an_engine_people_read_what_to_install(machine: Path) -> None:
    write_script(machine / "kind", "exit 0")

    with pytest.raises(ClusterError, match=r"docker or podman is missing\. .*apt-get install"):
        find_tools()


def test_an_engine_that_does_not_answer_is_not_taken(machine: Path) -> None:
    write_script(machine / "kind", "exit 0")
    write_script(machine / "docker", "exit 1")

    with pytest.raises(ClusterError, match="docker does not answer"):
        find_tools()
    write_script(machine / "podman", "exit 0")
    assert find_tools().engine == "podman"


def test_without_kind_people_read_how_to_get_it(machine: Path) -> None:
    write_script(machine / "docker", "exit 0")

    with pytest.raises(ClusterError, match=r"kind is missing\. Install it, .*go install"):
        find_tools()


@pytest.mark.usefixtures("machine")
def test_make_kind_says_so_before_anything_is_built(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", "devcluster.demo", "--on", "kind"],
        cwd=REPOSITORY, env=environment, capture_output=True, text=True,
    )  # fmt: skip

    assert done.returncode == 1
    assert done.stderr.startswith("demo: kind runs nodes as containers, and docker or podman is")
    assert not (tmp_path / "cache").exists()


@pytest.fixture
def log(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with kind and docker, which work: what they were asked for, one a line."""
    monkeypatch.setenv("PATH", f"{machine}:/usr/local/bin:/usr/bin:/bin:/usr/local/go/bin")
    path = machine / "log"
    write_script(machine / "kind", f'echo "kind $@ ($KIND_EXPERIMENTAL_PROVIDER)" >> {path}')
    write_script(
        machine / "docker",
        f'echo "docker $@" >> {path}',
        f'[ "$1" != inspect ] || echo {os.getpid()}',
    )
    return path


def test_the_cluster_is_made_from_the_configuration_of_this_repository(log: Path) -> None:
    cluster = KindCluster.create(DRIVER)
    cluster.load_images([Path("/images/operator.tar")])
    made = yaml.safe_load((cluster.root / "kind.yaml").read_text())
    shared = Path(made["nodes"][0]["extraMounts"][0]["hostPath"])
    specification = (shared / "base-specification.json").read_text()
    present = {path.name for path in shared.iterdir()}
    cluster.delete()

    _, clusters, create, inspect, load, delete = log.read_text().splitlines()
    assert clusters == "kind get clusters (docker)"
    assert create == (
        f"kind create cluster --name=gpumem-demo --config={cluster.root}/kind.yaml"
        f" --kubeconfig={cluster.kubeconfig} --wait=180s (docker)"
    )
    assert inspect == f"docker inspect --format={{{{.State.Pid}}}} {NODE}"
    assert load == "kind load image-archive /images/operator.tar --name=gpumem-demo (docker)"
    assert delete == "kind delete cluster --name=gpumem-demo (docker)"
    assert {"libnvidia-ml.so.1", "simulated-alloc", "state"} < present
    assert f'"source": "{INSIDE}/libnvidia-ml.so.1"' in specification
    assert not cluster.root.exists()


def test_a_cluster_that_is_there_already_is_left_alone(log: Path, machine: Path) -> None:
    write_script(machine / "kind", f'echo "kind $@" >> {log}', "echo gpumem-demo")

    with pytest.raises(ClusterError, match="kind delete cluster --name gpumem-demo"):
        KindCluster.create(DRIVER)

    assert "create" not in log.read_text()
    assert "delete" not in log.read_text()


def test_containers_begin_with_the_specification_that_the_node_has() -> None:
    text = CONFIGURATION.read_text()

    assert yaml.safe_load(text)["nodes"][0]["extraMounts"][0]["containerPath"] == str(INSIDE)
    assert f'base_runtime_spec = "{INSIDE}/base-specification.json"' in text

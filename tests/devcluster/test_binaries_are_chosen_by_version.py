"""Programs found on a machine are taken only when they say that they fit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_processes import REPOSITORY, write_script
from devcluster.binaries import choose_binaries, find_binaries
from devcluster.gobuild import built_path
from devcluster.gomodules import KUBERNETES_VARIABLE, PROGRAMS, SERVERS

Install = Callable[[str, str], Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a program that prints some version on an otherwise empty PATH; the cache is empty."""
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)

    def write(name: str, printed: str) -> Path:
        return write_script(tmp_path / "path" / name, f"echo '{printed}'")

    return write


def chosen_path(name: str) -> Path | None:
    candidate = choose_binaries()[name]
    return candidate.path if candidate else None


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        pytest.param("kubectl", "Client Version: v1.36.0", id="kubectl of the pinned minor"),
        pytest.param("kubectl", "Client Version: v1.34.4+vendor", id="the oldest kubectl"),
        pytest.param("etcd", "etcd Version: 3.5.21", id="the older etcd"),
        pytest.param("helm", "v4.9.0+g1234567", id="any helm 4"),
    ],
)
def test_a_program_on_path_is_taken_when_its_version_fits(
    install: Install, name: str, printed: str
) -> None:
    path = install(name, printed)

    assert chosen_path(name) == path


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        pytest.param("kubectl", "Client Version: v1.32.4-dispatcher", id="too old"),
        pytest.param("kubectl", "Client Version: v1.99.0", id="too new"),
        pytest.param("etcd", "etcd Version: 3.4.23", id="an etcd of a distribution"),
        pytest.param("helm", "v3.19.0+g1234567", id="helm 3"),
        pytest.param("kube-apiserver", "please log in first", id="a wrapper without a version"),
    ],
)
def test_a_program_on_path_is_left_alone_when_its_version_does_not_fit(
    install: Install, name: str, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    install(name, printed)

    assert chosen_path(name) is None
    assert f"{name} from PATH is not used" in capsys.readouterr().err


def test_a_program_that_fails_is_left_alone_whatever_it_prints(
    tmp_path: Path, install: Install
) -> None:
    install("kubectl", "")
    write_script(tmp_path / "path" / "kubectl", "echo v1.36.3", "exit 1")

    assert chosen_path("kubectl") is None


def test_a_program_built_before_is_preferred_to_path(install: Install) -> None:
    install("kubectl", "v1.36.0")
    kubectl = next(program for program in PROGRAMS if program.name == "kubectl")
    write_script(built_path(kubectl))

    assert chosen_path("kubectl") is None


def test_programs_of_kubebuilder_assets_come_first(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("etcd", "etcd Version: 3.6.1")
    given = write_script(tmp_path / "assets" / "etcd", "echo etcd Version: 3.5.9")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(given.parent))

    assert chosen_path("etcd") == given


def test_servers_of_one_older_minor_are_taken_together(install: Install) -> None:
    paths = {name: install(name, "Kubernetes v1.35.4") for name in SERVERS}

    assert {name: chosen_path(name) for name in SERVERS} == paths


def test_an_older_apiserver_alone_is_left_because_our_controllers_would_be_newer(
    install: Install,
) -> None:
    install("kube-apiserver", "Kubernetes v1.35.4")

    assert chosen_path("kube-apiserver") is None


@pytest.mark.usefixtures("install")
def test_programs_that_were_all_built_before_take_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for program in PROGRAMS:
        write_script(built_path(program))

    found = find_binaries(verbose=True)

    assert found == {program.name: built_path(program) for program in PROGRAMS}
    [line] = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        r"devcluster: etcd 3\S+, Kubernetes 1\.\S+, helm 4\S+ from the cache", line
    ), line


def test_where_one_comes_from_elsewhere_each_origin_is_told(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    for program in PROGRAMS:
        if program.name != "helm":
            write_script(built_path(program))
    helm = install("helm", "v4.9.0+g1234567")

    find_binaries(verbose=True)

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(PROGRAMS)
    assert f"devcluster: helm 4.9 from PATH: {helm}" in lines


@pytest.mark.parametrize("command", ["devcluster build", "devcluster.demo"])
def test_a_version_of_kubernetes_that_is_not_pinned_is_answered_in_words(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command.split()],
        cwd=REPOSITORY,
        env={**os.environ, KUBERNETES_VARIABLE: "1.20"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert "GPUMEM_KUBERNETES is 1.20, and there are 1.34, 1.35, 1.36" in line


def test_what_ends_clusters_needs_no_version_of_kubernetes() -> None:
    command = [sys.executable, "-m", "devcluster", "list"]
    environment = {**os.environ, KUBERNETES_VARIABLE: "1.20"}
    assert subprocess.run(command, cwd=REPOSITORY, env=environment).returncode == 0

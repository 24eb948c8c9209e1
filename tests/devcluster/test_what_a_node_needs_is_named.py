"""Where no node can run, people read why and what to do; nothing is installed unasked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cluster_processes import write_script
from devcluster.node import requirements
from devcluster.node.containerd import snapshotter_for
from devcluster.node.network import LINKS, PODS, Block
from devcluster.node.pause import pause_path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that has the programs in this folder, and no others."""
    monkeypatch.setattr(requirements, "SYSTEM_PATH", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(requirements.INSTALL_VARIABLE, raising=False)
    for name in requirements.NODE_PACKAGES:
        write_script(tmp_path / name, "exit 0")
    return tmp_path


def test_missing_packages_are_named_with_the_command_that_installs_them(machine: Path) -> None:
    (machine / "runc").unlink()
    (machine / "nft").unlink()

    missing = requirements.missing_programs(requirements.NODE_PACKAGES)

    assert missing == ["nftables", "runc"]
    reason = requirements.why_not_packages(missing)
    assert reason is not None
    assert "`apt-get install nftables runc`" in reason
    assert "GPUMEM_INSTALL_PACKAGES=1" in reason


def test_nothing_is_installed_unasked(machine: Path) -> None:
    log = machine / "log"
    write_script(machine / "apt-get", f'echo "$@" >> {log}')

    assert requirements.why_not_packages(["runc"]) is not None

    assert not log.exists()


def test_what_is_missing_is_installed_where_that_was_allowed(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = machine / "log"
    write_script(machine / "apt-get", f'echo "$@" >> {log}')
    monkeypatch.setenv(requirements.INSTALL_VARIABLE, "1")

    assert requirements.why_not_packages(["runc", "nftables"]) is None

    assert log.read_text().splitlines() == [
        "update",
        "install --yes --no-install-recommends runc nftables",
    ]


def test_an_installation_that_fails_is_a_reason_with_what_it_said(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_script(machine / "apt-get", "echo no network >&2", "exit 100")
    monkeypatch.setenv(requirements.INSTALL_VARIABLE, "1")

    assert requirements.why_not_packages(["runc", "nftables"]) == (
        "runc, nftables could not be installed: `apt-get update` ended with status 100 and said:"
        " no network"
    )


@pytest.mark.usefixtures("machine")
def test_where_nothing_installs_packages_that_is_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(requirements.INSTALL_VARIABLE, "1")

    reason = requirements.why_not_packages(["runc"])

    assert reason == "runc can not be installed here: there is no apt-get"


def test_a_compiler_is_asked_for_until_the_pause_image_is_made(
    machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(requirements, "CNI_FOLDERS", (machine,))
    (machine / "bridge").touch()
    assert requirements.missing_packages() == ["gcc", "libc6-dev"]

    pause_path().parent.mkdir(parents=True)
    pause_path().touch()

    assert requirements.missing_packages() == []


def test_the_plugins_of_cni_path_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bridge").touch()
    monkeypatch.setenv("CNI_PATH", f"/nowhere:{tmp_path}")

    assert requirements.cni_folder() == tmp_path


@pytest.mark.skipif(os.geteuid() == 0, reason="root may start a node")
def test_whoever_is_not_root_is_told_so() -> None:
    assert "root" in (requirements.why_not() or "")


def test_nodes_have_networks_of_their_own() -> None:
    blocks = [Block(number) for number in range(1, 255)]

    assert len({block.link for block in blocks} | {block.pods for block in blocks}) == 508
    assert all(block.link.subnet_of(LINKS) and block.pods.subnet_of(PODS) for block in blocks)
    # The kernel allows 15 characters.
    assert max(len(block.interface) for block in blocks) <= 15


def test_images_are_unpacked_without_overlays_on_an_overlay() -> None:
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    overlays = [mount[1] for mount in mounts if mount[2] == "overlay"]

    assert snapshotter_for(Path("/proc")) == "overlayfs"
    for place in overlays:
        assert snapshotter_for(Path(place)) == "native"

"""Cgroups of version 2 have what their parents hand down, and a kubelet refuses to lack any."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.failure import ClusterError
from devcluster.node import cgroups
from devcluster.node.cgroups import controllers_to_hand_down, hand_down


@pytest.mark.parametrize(
    ("available", "given", "turned_on"),
    [
        pytest.param(
            "cpuset cpu io memory hugetlb pids rdma misc",
            "cpu memory pids",
            ["cpuset", "hugetlb"],
            id="systemd hands down three of five",
        ),
        pytest.param("cpuset cpu memory pids", "", ["cpu", "cpuset", "memory", "pids"],
                     id="the root of a container hands down nothing"),
        pytest.param("cpu memory", "cpu memory", [], id="what the machine lacks is not asked for"),
        pytest.param("io rdma misc", "", [], id="what a kubelet can not use stays as it is"),
    ],
)  # fmt: skip
def test_all_that_a_kubelet_could_use_is_handed_down(
    available: str, given: str, turned_on: list[str]
) -> None:
    asked = controllers_to_hand_down(available=available.split(), given=given.split())

    assert asked == turned_on


@pytest.fixture
def below_another() -> Iterator[Path]:
    """A cgroup of version 2 of this machine, like the root that a container sees."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    tops = [Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"]
    usable = [top for top in tops if os.access(top, os.W_OK) and given_to_the_children(top)]
    if not usable:
        pytest.skip("no cgroups of version 2 with a controller can be written here")
    hand_down(usable[0])
    made = usable[0] / f"handing-down-{uuid.uuid4().hex[:6]}"
    made.mkdir()
    yield made
    for folder in (made / cgroups.LEAF, made):
        if folder.exists():
            folder.rmdir()


def given_to_the_children(cgroup: Path) -> set[str]:
    available = (cgroup / "cgroup.controllers").read_text().split()
    return set(cgroups.KUBELET_CONTROLLERS) & set(available)


def test_processes_at_the_root_of_a_container_make_room(below_another: Path) -> None:
    wanted = given_to_the_children(below_another)
    with subprocess.Popen(["sleep", "600"]) as process:
        (below_another / "cgroup.procs").write_text(str(process.pid))

        hand_down(below_another)

        moved = (below_another / cgroups.LEAF / "cgroup.procs").read_text().split()
        process.kill()
    assert moved == [str(process.pid)]
    assert set((below_another / "cgroup.subtree_control").read_text().split()) == wanted


def test_a_controller_that_can_not_be_had_is_told_with_the_command(below_another: Path) -> None:
    # One that this cgroup was not given itself can not be handed on.
    inner = below_another / "inner"
    inner.mkdir()
    try:
        with pytest.raises(ClusterError, match=r"controller memory, and .*: No such file"):
            cgroups.turn_on("memory", inner)
    finally:
        inner.rmdir()

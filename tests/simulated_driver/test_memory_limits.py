"""Limits of cgroups, which drivers from 615 on enforce."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from devcluster.failure import ClusterError
from devcluster.simulated_driver import MIB, Driver, MigInstance, numbered_device
from simulated_driver.node import Node

UNLIMITED = 0xFFFFFFFFFFFFFFFF
PARTITIONING = "615.71.09"
CODE = """
import os, pynvml, sys
path, soft, hard, user = sys.argv[1], *map(int, sys.argv[2:5])
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
os.setuid(user)
try:
    if hard >= 0:
        limits = pynvml.c_nvmlSetMemoryLimits_v1_t(path.encode(), soft, hard)
        pynvml.nvmlDeviceSetMemoryLimits_v1(handle, limits)
    limits = pynvml.c_nvmlGetMemoryLimits_v1_t(path.encode())
    pynvml.nvmlDeviceGetMemoryLimits_v1(handle, limits)
    print(limits.softLimit, limits.hardLimit, limits.currentUsed)
except pynvml.NVMLError as error:
    print(type(error).__name__)
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may set a memory limit")


@pytest.fixture
def limited(node: Node) -> Node:
    node.use(Driver((numbered_device(0),), version=PARTITIONING))
    return node


@pytest.fixture
def cgroup(tmp_path: Path) -> Path:
    """A folder stands for the cgroup: the simulation looks at its path only."""
    path = tmp_path / "cgroup" / "pod"
    (path / "container").mkdir(parents=True)
    return path


def limits(node: Node, cgroup: Path, soft: int = 0, hard: int = -1, user: int = 0) -> str:
    done = node.run(CODE, str(cgroup), str(soft), str(hard), str(user))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_cgroup_without_a_limit_reads_as_unlimited(limited: Node, cgroup: Path) -> None:
    assert limits(limited, cgroup) == f"0 {UNLIMITED} 0"


def test_a_limit_is_read_back_with_what_the_cgroup_uses(limited: Node, cgroup: Path) -> None:
    with limited.hold(100, cgroup=str(cgroup / "container")), limited.hold(9):
        assert limits(limited, cgroup, MIB, 500 * MIB) == f"{MIB} {500 * MIB} {100 * MIB}"


def test_a_limit_counts_for_the_cgroups_below(limited: Node, cgroup: Path) -> None:
    limits(limited, cgroup, 0, 500 * MIB)
    assert limits(limited, cgroup / "container") == f"0 {500 * MIB} 0"
    assert limits(limited, cgroup.parent) == f"0 {UNLIMITED} 0"


def test_the_limit_of_the_nearest_cgroup_counts(limited: Node, cgroup: Path) -> None:
    """Several, because their order in the folder of limits must not decide."""
    below = [cgroup / f"container-{number}" for number in range(6)]
    limits(limited, cgroup, 0, 500 * MIB)
    for number, path in enumerate(below):
        path.mkdir()
        limits(limited, path, 0, (600 + number) * MIB)
    for number, path in enumerate(below):
        assert limits(limited, path) == f"0 {(600 + number) * MIB} 0"


def test_more_than_the_hard_limit_is_out_of_memory(limited: Node, cgroup: Path) -> None:
    limits(limited, cgroup, 0, 500 * MIB)
    inside = str(cgroup / "container")
    with limited.hold(400, cgroup=inside), pytest.raises(ClusterError) as refused:
        limited.hold(200, cgroup=inside)
    assert "asked for 200 MiB, 100 MiB are free under the limit" in str(refused.value)
    with limited.hold(600, cgroup="/elsewhere"):
        pass


def test_a_limit_is_cleared_and_ends_with_its_cgroup(limited: Node, cgroup: Path) -> None:
    limits(limited, cgroup, 0, 500 * MIB)
    assert limits(limited, cgroup, 0, UNLIMITED) == f"0 {UNLIMITED} 0"
    limits(limited, cgroup, 0, 500 * MIB)
    cgroup.rename(cgroup.with_name("moved"))
    assert limits(limited, cgroup) == "NVMLError_NotFound"
    cgroup.mkdir()
    assert limits(limited, cgroup) == f"0 {UNLIMITED} 0"


def test_only_root_sets_a_limit(shared_node: Node, cgroup: Path) -> None:
    shared_node.use(Driver((numbered_device(0),), version=PARTITIONING))
    assert limits(shared_node, cgroup, 0, 500, user=65534) == "NVMLError_NoPermission"


def test_a_soft_limit_is_not_above_the_hard_one(limited: Node, cgroup: Path) -> None:
    assert limits(limited, cgroup, 5, 4) == "NVMLError_InvalidArgument"


def test_older_drivers_and_mig_have_no_limits(node: Node, cgroup: Path) -> None:
    assert limits(node, cgroup) == "NVMLError_FunctionNotFound"
    instance = MigInstance("MIG-51350000-0000-4000-8000-0000000000a0", 0)
    card = numbered_device(0, instances=(instance,))
    node.use(Driver((card,), version=PARTITIONING))
    assert limits(node, cgroup) == "NVMLError_NotSupported"

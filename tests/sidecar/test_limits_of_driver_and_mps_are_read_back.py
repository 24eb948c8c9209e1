"""What the driver and MPS enforce is told by who can see it, and silence is no error.

Real cgroups, and the real pynvml on the simulated driver.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from devcluster.simulated_driver import MIB, Driver, Fault, numbered_device, write_faults
from gpumem_sidecar.cgroups import container_folder
from gpumem_sidecar.mps_limit import limit_on
from sampling import OWN_POD, Sampling
from simulated_driver.node import Node

PARTITIONING = "615.71.09"
GIB = 2**30
UID, ID = OWN_POD, "0123456789abcdef" * 4
LIMIT = """
import pynvml, sys
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
limits = pynvml.c_nvmlSetMemoryLimits_v1_t(sys.argv[1].encode(), 0, int(sys.argv[2]))
pynvml.nvmlDeviceSetMemoryLimits_v1(handle, limits)
"""


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "driver", Driver((numbered_device(0),), version=PARTITIONING))


@pytest.fixture
def unified() -> Path:
    """Where cgroup v2 is mounted, for everything or beside v1."""
    roots = [Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")]
    root = next((one for one in roots if (one / "cgroup.controllers").exists()), None)
    if root is None or not os.access(root, os.W_OK) or os.geteuid() != 0:
        pytest.skip("cgroups of v2 can be made by root only, where they are mounted writable")
    return root


@pytest.fixture
def container(unified: Path) -> Iterator[Path]:
    made = unified / f"gpumem-limits-{os.getpid()}"
    group = made / "kubepods" / f"pod{UID}" / ID
    group.mkdir(parents=True)
    yield group
    for folder in (group, group.parent, group.parent.parent, made):
        folder.rmdir()


def look(node: Node, variables: Mapping[str, str], *, agent: bool = True) -> Any:
    with Sampling(node.folder, agent=agent, variables=variables) as sampling:
        return sampling.sample()


def limit(node: Node, cgroup: Path, amount: int) -> None:
    done = node.run(LIMIT, str(cgroup), str(amount))
    assert done.returncode == 0, done.stderr


def test_the_agent_reads_back_the_limit_of_a_container(
    node: Node, unified: Path, container: Path
) -> None:
    where = {"GPUMEM_CGROUP_PATH": str(unified)}
    with node.hold(1024) as held, node.hold(512):
        (container / "cgroup.procs").write_text(str(held.pid))
        before = look(node, where)
        limit(node, container, 8 * GIB)
        after = look(node, where)
    assert before["driverLimits"] == after["driverLimits"] == "Supported"
    assert limits_of(before) == {UID: None, None: None}
    assert limits_of(after) == {UID: 8 * GIB, None: None}


def limits_of(report: Any) -> dict[str | None, int | None]:
    return {one["podUid"]: one["driverLimitBytes"] for one in report["processes"]}


def test_an_older_driver_is_silent_and_everything_else_is_told(
    node: Node, unified: Path, container: Path
) -> None:
    node.use(Driver((numbered_device(0),), version="580.159.03"))
    with node.hold(1024) as held:
        (container / "cgroup.procs").write_text(str(held.pid))
        report = look(node, {"GPUMEM_CGROUP_PATH": str(unified)})
    assert (report["driverLimits"], report["unknown"]) == ("Unsupported", None)
    assert [(one["bytes"], one["driverLimitBytes"]) for one in report["processes"]] == [
        (1024 * MIB, None)
    ]


@pytest.mark.parametrize("error", ["NO_PERMISSION", "UNKNOWN", "NOT_SUPPORTED"])
def test_limits_that_can_not_be_read_take_no_number_away(
    node: Node, unified: Path, error: str
) -> None:
    write_faults(node.folder, [Fault(function="nvmlDeviceGetMemoryLimits_v1", error=error)])
    with node.hold(1024):
        report = look(node, {"GPUMEM_CGROUP_PATH": str(unified)})
    assert report["driverLimits"] == "Unsupported"
    assert [one["bytes"] for one in report["processes"]] == [1024 * MIB]


def test_without_cgroup_v2_nothing_can_be_limited(node: Node, tmp_path: Path) -> None:
    report = look(node, {"GPUMEM_CGROUP_PATH": str(tmp_path)})
    assert report["driverLimits"] == "Unsupported"


def test_a_sidecar_does_not_ask(node: Node) -> None:
    with node.hold(1024):
        assert look(node, {}, agent=False)["driverLimits"] is None


def test_the_limit_that_a_client_of_mps_was_started_with_is_told(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=4G")
    with node.hold(1024, kind="mps") as client, node.hold(512) as other:
        found = {one["pid"]: one for one in look(node, {})["processes"]}
    monkeypatch.delenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT")
    with node.hold(1024, kind="mps"):
        [unset] = look(node, {})["processes"]
    assert (found[client.pid]["mps"], found[client.pid]["mpsLimitBytes"]) == (True, 4 * GIB)
    assert (found[other.pid]["mps"], found[other.pid]["mpsLimitBytes"]) == (False, None)
    assert (unset["mps"], unset["mpsLimitBytes"]) == (True, None)


@pytest.mark.parametrize(
    ("text", "gpus", "expected"),
    [
        ("0=4G", 1, 4 * GIB),
        ("0=4096M,1=2G", 2, 4 * GIB),
        ("0=4096M", 2, None),
        ("1=4096M", 1, None),
        ("GPU-1=1G,0=4G", 1, GIB),
        ("GPU-2=1G", 1, None),
        (" 0 = 4gb ", 1, 4 * GIB),
        ("0=0", 1, None),
        ("0=much", 1, None),
        ("0=999999999999999G", 1, None),
        ("", 1, None),
        (None, 1, None),
    ],
)
def test_a_limit_counts_where_every_gpu_of_the_client_has_one(
    text: str | None, gpus: int, expected: int | None
) -> None:
    assert limit_on("GPU-1234", gpus, text) == expected


SLICE = f"kubepods-burstable-pod{UID.replace('-', '_')}.slice"


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        (f"0::/kubepods/burstable/pod{UID}/{ID}\n", f"/kubepods/burstable/pod{UID}/{ID}"),
        (
            f"0::/kubepods.slice/{SLICE}/cri-containerd-{ID}.scope/inner/deeper\n",
            f"/kubepods.slice/{SLICE}/cri-containerd-{ID}.scope",
        ),
        (f"0::/kubepods.slice/{SLICE}:cri-containerd:{ID}\n",) * 2,
        (f"3:memory:/kubepods/pod{UID}/{ID}\n0::/\n", None),
        (f"0::/../../pod{UID}/{ID}\n", None),
        (f"0::/kubepods/pod{UID}/helper\n", None),
        ("0::/user.slice\n", None),
        ("", None),
    ],
    ids=["cgroupfs", "systemd", "both", "v1", "relative", "no container", "no pod", "gone"],
)
def test_the_group_of_a_container_is_found_in_cgroup_v2(text: str, folder: str | None) -> None:
    expected = folder and folder.removeprefix("0::").rstrip("\n")
    assert container_folder(text) == expected

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
from gpumem_sidecar.cgroups import container_folder, whole
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


@pytest.fixture
def agents_own(container: Path) -> Iterator[Path]:
    """The group of the agent's container, in another pod of the same node."""
    pod = container.parent.parent / "pod11111111-1111-4111-8111-111111111111"
    group = pod / ID[::-1]
    group.mkdir(parents=True)
    yield group
    group.rmdir()
    pod.rmdir()


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


def in_a_cgroup_namespace(own: Path) -> tuple[str, ...]:
    """Command to run something under, as a runtime starts a container in its group."""
    enter = f'echo $$ > {own}/cgroup.procs && exec unshare --cgroup "$@"'
    return ("sh", "-c", enter, "sh")


def look_from_its_own_namespace(node: Node, container: Path, own: Path, *, sees: Path) -> Any:
    """What an agent in the group `own` reports of a process with a limit in `container`."""
    where = {"GPUMEM_CGROUP_PATH": str(sees)}
    with node.hold(1024) as held:
        (container / "cgroup.procs").write_text(str(held.pid))
        limit(node, container, 8 * GIB)
        with Sampling(
            node.folder, agent=True, variables=where, prefix=in_a_cgroup_namespace(own)
        ) as sampling:
            return sampling.sample()


def test_an_agent_in_a_cgroup_namespace_of_its_own_finds_the_groups_of_others(
    node: Node, unified: Path, container: Path, agents_own: Path
) -> None:
    report = look_from_its_own_namespace(node, container, agents_own, sees=unified)
    assert (report["driverLimits"], limits_of(report)) == ("Supported", {UID: 8 * GIB})


def test_with_its_own_group_alone_it_never_says_that_limits_can_be_had(
    node: Node, container: Path, agents_own: Path
) -> None:
    # What a runtime mounts for a container that was given nothing of the node.
    report = look_from_its_own_namespace(node, container, agents_own, sees=agents_own)
    assert report["driverLimits"] == "Unsupported"
    assert [one["bytes"] for one in report["processes"]] == [1024 * MIB]
    assert [one["driverLimitBytes"] for one in report["processes"]] == [None]


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
    ("path", "folder"),
    [
        (f"/kubepods/burstable/pod{UID}/{ID}", f"/kubepods/burstable/pod{UID}/{ID}"),
        (
            f"/kubepods.slice/{SLICE}/cri-containerd-{ID}.scope/inner/deeper",
            f"/kubepods.slice/{SLICE}/cri-containerd-{ID}.scope",
        ),
        (f"/kubepods.slice/{SLICE}:cri-containerd:{ID}",) * 2,
        (f"/kubepods/pod{UID}/helper", None),
        ("/user.slice", None),
        ("/", None),
    ],
    ids=["cgroupfs", "systemd", "both", "no container", "no pod", "root"],
)
def test_the_group_of_a_container_is_found_in_cgroup_v2(path: str, folder: str | None) -> None:
    assert container_folder(path) == folder


@pytest.mark.parametrize(
    ("namespace", "path", "expected"),
    [
        ("", "/kubepods/one", "/kubepods/one"),
        ("kubepods/agent/a", "/../../train/b", "/kubepods/train/b"),
        ("kubepods/agent/a", "/../../../system/c", "/system/c"),
        ("kubepods/agent/a", "/inner", "/kubepods/agent/a/inner"),
        ("kubepods/agent/a", "/../../../..", None),
        ("", "/../other", None),
    ],
)
def test_a_path_of_a_cgroup_namespace_is_made_whole_or_leads_out_of_the_tree(
    namespace: str, path: str, expected: str | None
) -> None:
    assert whole(tuple(filter(None, namespace.split("/"))), path) == expected

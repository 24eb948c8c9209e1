"""A table of drivers and places to look from: what is measured, or why it is not.

The real pynvml on the simulated driver; docs/simulated-driver.md has the source of each rule.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devcluster.sandbox import child_of, inside, new_namespace
from devcluster.simulated_driver import (
    MIB,
    Driver,
    Fault,
    MigInstance,
    numbered_device,
    write_faults,
)
from sampling import OWN_POD, Sampling, amounts
from simulated_driver.node import RESERVED, TOTAL, Node
from simulated_driver.node import needs_namespaces as needs_namespaces

HELD = 8192


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "driver")


@pytest.fixture
def pod_cgroup() -> Iterator[Path]:
    """A container's group of cgroup v2, or of a controller of v1; skipped where it can't be."""
    roots = [Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")]
    root = next((one for one in roots if (one / "cgroup.procs").exists()), None)
    if root is None or not os.access(root, os.W_OK):
        pytest.skip("cgroups can be made by root only, where /sys/fs/cgroup is mounted writable")
    made = root / f"gpumem-test-{os.getpid()}"
    group = made / "kubepods" / f"pod{OWN_POD}" / ("0123456789abcdef" * 4)
    group.mkdir(parents=True)
    yield group
    for folder in (group, group.parent, group.parent.parent, made):
        folder.rmdir()


def look(node: Node, **options: Any) -> Any:
    with Sampling(node.folder, **options) as sampling:
        return sampling.sample()


HOST_PIDS = ("510.39.01", "525.60.13", "535.104.12", "535.112.99")
HIDES_MEMORY = ("535.113.01", "550.54.14", "560.35.03", "565.57.00")
RIGHT = ("565.57.01", "570.86.15", "580.159.03", "615.71.09")


@pytest.mark.parametrize(
    "version", ["470.82.01", "535.43.02", "535.86.05", *HOST_PIDS, *HIDES_MEMORY, *RIGHT]
)
def test_the_agent_on_the_node_is_right_with_every_driver(node: Node, version: str) -> None:
    node.use(Driver((numbered_device(0),), version=version))
    with node.hold(HELD) as held:
        report = look(node, agent=True, child_namespace=False)
    assert report["unknown"] is None
    assert report["driverVersion"] == f"{version}-simulated"
    assert amounts(report) == [(held.pid, HELD * MIB)]


CHILD = [
    *[(version, "HostPids") for version in HOST_PIDS],
    *[(version, "DriverHidesMemory") for version in HIDES_MEMORY],
    *[(version, HELD * MIB) for version in RIGHT],
]


@needs_namespaces
@pytest.mark.parametrize(("version", "expected"), CHILD, ids=[version for version, _ in CHILD])
def test_the_sidecar_in_the_pod_s_namespace(node: Node, version: str, expected: int | str) -> None:
    node.use(Driver((numbered_device(0),), version=version))
    with node.hold(HELD, prefix=new_namespace()) as held:
        report = look(node, prefix=inside(child_of(held.pid)))
    [gpu] = report["gpus"]
    assert gpu["usedBytes"] == HELD * MIB, "the card's own number is right with every driver"
    if expected == "HostPids":
        assert (report["unknown"], report["processes"]) == ("HostPids", [])
    else:
        assert report["unknown"] is None
        assert amounts(report) == [(held.pid_inside, expected)]
        assert report["processes"][0]["podUid"] == OWN_POD


@needs_namespaces
def test_with_host_pid_on_a_node_that_is_a_container_only_the_pod_s_groups_are_its_own(
    node: Node, pod_cgroup: Path
) -> None:
    """A namespace stands for the node's: it is not the machine's first, and not the pod's."""
    with node.hold(HELD, prefix=new_namespace()) as held:
        sees = {"prefix": inside(child_of(held.pid)), "namespace_of_pod": False}
        assert amounts(look(node, **sees)) == [(held.pid_inside, "NotAttributed")]
        (pod_cgroup / "cgroup.procs").write_text(str(child_of(held.pid)))
        report = look(node, **sees)
        assert amounts(report) == [(held.pid_inside, HELD * MIB)]
        assert report["processes"][0]["podUid"] == OWN_POD


@needs_namespaces
@pytest.mark.parametrize("version", [HOST_PIDS[0], HIDES_MEMORY[0], RIGHT[0]])
def test_a_sidecar_that_shares_no_namespace_does_not_say_that_nothing_runs(
    node: Node, version: str
) -> None:
    node.use(Driver((numbered_device(0),), version=version))
    with node.hold(HELD, prefix=new_namespace()):
        report = look(node, prefix=new_namespace())
    assert (report["unknown"], report["processes"]) == ("ProcessesNotShared", [])
    assert report["gpus"][0]["usedBytes"] == HELD * MIB


def test_a_card_tells_reserve_and_use_apart(node: Node) -> None:
    with node.hold(HELD, managed_mib=100):
        [gpu] = look(node, agent=True)["gpus"]
    assert gpu == {
        "uuid": numbered_device(0).uuid,
        "index": 0,
        "model": "Simulated H200",
        "parent": None,
        "totalBytes": TOTAL,
        "reservedBytes": RESERVED,
        "usedBytes": (HELD + 100) * MIB,
        "unknown": None,
    }


def test_a_driver_that_does_not_tell_the_reserve_leaves_it_unknown(node: Node) -> None:
    node.use(Driver((numbered_device(0),), version="470.82.01"))
    [gpu] = look(node, agent=True, child_namespace=False)["gpus"]
    assert gpu["reservedBytes"] is None
    assert gpu["totalBytes"] == TOTAL


@pytest.mark.parametrize("kind", ["compute", "graphics", "mps"])
def test_a_process_is_counted_once_whatever_lists_it_is_in(node: Node, kind: str) -> None:
    with node.hold(HELD, kind=kind) as held:
        report = look(node, agent=True)
    assert amounts(report) == [(held.pid, HELD * MIB)]
    assert report["processes"][0]["mps"] is (kind == "mps")


def test_the_agent_tells_processes_of_the_node_as_those_of_no_pod(node: Node) -> None:
    with node.hold(HELD):
        [process] = look(node, agent=True)["processes"]
    assert (process["podUid"], process["container"], process["containerId"]) == (None, None, None)
    assert process["bytes"] == HELD * MIB


def test_the_agent_names_pod_and_container_by_the_cgroup(node: Node, pod_cgroup: Path) -> None:
    """A real cgroup, as the kubelet makes it."""
    with node.hold(HELD) as held:
        (pod_cgroup / "cgroup.procs").write_text(str(held.pid))
        [process] = look(node, agent=True)["processes"]
    assert (process["podUid"], process["containerId"]) == (OWN_POD, pod_cgroup.name)


FIRST = MigInstance("MIG-51350000-0000-4000-8000-0000000000a0", 0, gpu_instance=7)
THIRD = MigInstance("MIG-51350000-0000-4000-8000-0000000000a2", 2, gpu_instance=2)


def test_instances_have_their_own_memory_and_nobody_counts_twice(node: Node) -> None:
    card = numbered_device(0, instances=(FIRST, THIRD))
    node.use(Driver((card, numbered_device(1))))
    held = (node.hold(100, FIRST.uuid), node.hold(200, THIRD.uuid), node.hold(300, "1"))
    with held[0] as first, held[1] as third, held[2] as whole:
        report = look(node, agent=True)
    assert [(gpu["uuid"], gpu["parent"], gpu["index"]) for gpu in report["gpus"]] == [
        (card.uuid, None, 0),
        (FIRST.uuid, card.uuid, 0),
        (THIRD.uuid, card.uuid, 2),
        (numbered_device(1).uuid, None, 1),
    ]
    assert {(one["gpu"], one["pid"], one["bytes"]) for one in report["processes"]} == {
        (FIRST.uuid, first.pid, 100 * MIB),
        (THIRD.uuid, third.pid, 200 * MIB),
        (numbered_device(1).uuid, whole.pid, 300 * MIB),
    }


def test_an_instance_that_was_made_while_it_runs_is_found(node: Node) -> None:
    node.use(Driver((numbered_device(0, instances=(FIRST,)),)))
    with Sampling(node.folder, agent=True) as sampling:
        assert len(sampling.sample()["gpus"]) == 2
        node.use(Driver((numbered_device(0, instances=(THIRD,)),)))
        uuids = [gpu["uuid"] for gpu in sampling.sample()["gpus"]]
    assert uuids == [numbered_device(0).uuid, THIRD.uuid]


def test_an_amount_that_is_not_available_is_unknown(node: Node) -> None:
    write_faults(node.folder, [Fault(hides_process_memory=True)])
    with node.hold(HELD) as held:
        assert amounts(look(node, agent=True)) == [(held.pid, "NotAvailable")]


def test_a_card_of_unified_memory_knows_its_processes_and_no_amounts_of_its_own(
    node: Node,
) -> None:
    write_faults(node.folder, [Fault("NOT_SUPPORTED", "nvmlDeviceGetMemoryInfo*")])
    with node.hold(HELD) as held:
        report = look(node, agent=True)
    assert amounts(report) == [(held.pid, HELD * MIB)]
    [gpu] = report["gpus"]
    assert (gpu["totalBytes"], gpu["usedBytes"], gpu["unknown"]) == (None, None, "NotSupported")


LISTS = "nvmlDeviceGet*RunningProcesses*"
FAULTS = [
    ("GPU_IS_LOST", "DeviceLost"),
    ("RESET_REQUIRED", "DeviceLost"),
    ("NOT_SUPPORTED", "NotSupported"),
    ("FUNCTION_NOT_FOUND", "NotSupported"),
    ("NO_PERMISSION", "NVMLError"),
    ("UNKNOWN", "NVMLError"),
]


@pytest.mark.parametrize(("error", "reason"), FAULTS, ids=[error for error, _ in FAULTS])
def test_a_list_that_fails_is_no_empty_list(node: Node, error: str, reason: str) -> None:
    node.use(Driver((numbered_device(0), numbered_device(1))))
    write_faults(node.folder, [Fault(error, LISTS, "1")])
    with node.hold(HELD) as held, node.hold(HELD, "1"):
        report = look(node, agent=True)
    assert [gpu["unknown"] for gpu in report["gpus"]] == [None, reason]
    assert amounts(report) == [(held.pid, HELD * MIB)]


@pytest.mark.parametrize(("error", "reason"), FAULTS, ids=[error for error, _ in FAULTS])
def test_memory_that_can_not_be_read_is_not_zero(node: Node, error: str, reason: str) -> None:
    write_faults(node.folder, [Fault(error, "nvmlDeviceGetMemoryInfo*")])
    with node.hold(HELD):
        [gpu] = look(node, agent=True)["gpus"]
    assert (gpu["usedBytes"], gpu["unknown"]) == (None, reason)


STARTS = [
    ("DRIVER_NOT_LOADED", "NoNVMLInSidecar"),
    ("LIB_RM_VERSION_MISMATCH", "NVMLError"),
    ("UNKNOWN", "NVMLError"),
]


@pytest.mark.parametrize(("error", "reason"), STARTS, ids=[error for error, _ in STARTS])
def test_an_nvml_that_does_not_start(node: Node, error: str, reason: str) -> None:
    write_faults(node.folder, [Fault(error, "nvmlInit*")])
    report = look(node, agent=True)
    assert (report["unknown"], report["gpus"], report["driverVersion"]) == (reason, [], None)


def test_no_library_at_all(node: Node) -> None:
    report = look(node, agent=True, variables={"LD_LIBRARY_PATH": ""})
    assert (report["unknown"], report["driverVersion"]) == ("NoNVMLInSidecar", None)


def test_a_process_that_holds_more_than_the_card_has_is_a_misreading(node: Node) -> None:
    with node.hold(HELD) as held:
        node.use(Driver((replace(numbered_device(0), total_mib=1024, reserved_mib=0),)))
        assert amounts(look(node, agent=True)) == [(held.pid, "NotAvailable")]


def test_it_finds_out_itself_where_it_stands(node: Node) -> None:
    node.use(Driver((numbered_device(0),), version="550.54.14"))
    first = os.stat("/proc/self/ns/pid").st_ino == 0xEFFFFFFC
    with node.hold(HELD) as held:
        expected = HELD * MIB if first else "DriverHidesMemory"
        assert amounts(look(node, agent=True)) == [(held.pid, expected)]

"""Instances of a card: their own memory and processes, with gaps between their indices."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from devcluster.failure import ClusterError
from devcluster.simulated_driver import MIB, Driver, MigInstance, numbered_device
from simulated_driver.node import Node

FIRST = MigInstance("MIG-51350000-0000-4000-8000-0000000000a0", 0, gpu_instance=7)
THIRD = MigInstance(
    "MIG-51350000-0000-4000-8000-0000000000a2",
    2,
    profile="3g.71gb",
    total_mib=71680,
    gpu_instance=2,
    slices=3,
)
GAP = {"error": "NOT_FOUND"}
CARD = numbered_device(0, instances=(FIRST, THIRD))


@pytest.fixture
def split(node: Node) -> Node:
    node.use(Driver((CARD,)))
    return node


def test_instances_are_found_by_index_with_gaps(split: Node) -> None:
    card = split.card()
    assert card["mig_mode"] == [1, 1]
    assert [found == GAP for found in card["instances"]] == [False, True, False, *[True] * 4]
    third = card["instances"][2]
    assert third["uuid"] == THIRD.uuid
    assert third["name"] == "Simulated H200 MIG 3g.71gb"
    assert (third["index"], third["by_uuid"]) == (2, 2)
    assert (third["gpu_instance"], third["compute_instance"]) == (2, 0)
    assert (third["memory_mib"], third["slices"]) == (71680, 3)
    assert third["parent"] == card["uuid"]


def test_an_instance_has_memory_and_processes_of_its_own(split: Node) -> None:
    with split.hold(100, FIRST.uuid) as one, split.hold(5000, THIRD.uuid) as other:
        card = split.card()
    first, _, third, *_ = card["instances"]
    assert first["compute"] == [[one.pid, 100 * MIB, 7, 0]]
    assert third["compute"] == [[other.pid, 5000 * MIB, 2, 0]]
    assert first["memory_v2"] == {
        "total": 16384 * MIB,
        "reserved": 64 * MIB,
        "used": 100 * MIB,
        "free": (16384 - 64 - 100) * MIB,
    }
    assert first["memory"]["used"] == 164 * MIB


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is told about the whole card")
def test_root_sees_the_sum_on_the_card(split: Node) -> None:
    with split.hold(100, FIRST.uuid) as one, split.hold(5000, THIRD.uuid) as other:
        card = split.card()
    assert card["compute"] == sorted([[one.pid, 100 * MIB, 7, 0], [other.pid, 5000 * MIB, 2, 0]])
    assert card["memory_v2"]["used"] == 5100 * MIB


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_others_see_their_instance_but_not_the_whole_card(shared_node: Node) -> None:
    code = """
import os, pynvml
pynvml.nvmlInit()
os.setresuid(65534, 65534, 65534)
card = pynvml.nvmlDeviceGetHandleByIndex(0)
instance = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 0)
print(pynvml.nvmlDeviceGetMemoryInfo(instance).total >> 20)
for question in (pynvml.nvmlDeviceGetMemoryInfo, pynvml.nvmlDeviceGetComputeRunningProcesses_v3):
    try:
        question(card)
    except pynvml.NVMLError_NoPermission as error:
        print(error)
"""
    shared_node.use(Driver((CARD,)))
    done = shared_node.run(code)
    assert done.stdout.splitlines() == ["16384", *["Insufficient Permissions"] * 2], done.stderr


def test_memory_is_taken_from_an_instance_and_never_from_the_card(split: Node) -> None:
    with pytest.raises(ClusterError, match=r"an instance .* must be named"):
        split.hold(100, CARD.uuid)
    with pytest.raises(ClusterError, match="16320 MiB are free"):
        split.hold(16384, FIRST.uuid)


def test_a_card_without_mig_says_so(node: Node) -> None:
    node.use(Driver((numbered_device(0),)))
    card = node.card()
    assert card["mig_mode"] == [0, 0]
    assert card["instances"] == [], "driver 580 answers that at most 0 are possible"


def test_a_card_that_knows_no_mig_does_not_support_it(node: Node) -> None:
    node.use(Driver((replace(numbered_device(0), max_instances=0),)))
    card = node.card()
    assert card["mig_mode"] == {"error": "NOT_SUPPORTED"}
    assert card["instances"] == []


def test_the_handle_of_a_destroyed_instance_is_invalid(split: Node) -> None:
    done = split.run(
        """
import pynvml, sys
pynvml.nvmlInit()
card = pynvml.nvmlDeviceGetHandleByIndex(0)
instance = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 2)
from pathlib import Path
conf = Path(sys.argv[1]) / "driver.conf"
lines = [line for line in conf.read_text().splitlines() if "\\tindex=2\\t" not in line]
new = conf.with_name("new")
new.write_text("\\n".join(lines) + "\\n")
new.replace(conf)
for question, handle in (
    (pynvml.nvmlDeviceGetMemoryInfo, instance),
    (lambda card: pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 2), card),
):
    try:
        question(handle)
    except pynvml.NVMLError as error:
        print(type(error).__name__)
""",
        str(split.folder),
    )
    assert done.stdout.split() == ["NVMLError_InvalidArgument", "NVMLError_NotFound"], done.stderr

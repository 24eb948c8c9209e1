"""A card or MIG instance that can not be read is in the report with a reason, never absent.

The real pynvml on the simulated driver, with an error for each call that leads to a card.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from devcluster.simulated_driver import (
    MIB,
    Driver,
    Fault,
    MigInstance,
    numbered_device,
    write_faults,
)
from sampling import Sampling
from simulated_driver.node import Node

ONE, TWO = numbered_device(0), numbered_device(1)
SLICE = MigInstance("MIG-51350000-0000-4000-8000-0000000000a0", 0, gpu_instance=7)
DIVIDED = numbered_device(0, instances=(SLICE,))
HANDLE = "nvmlDeviceGetHandleByIndex*"
UUID = "nvmlDeviceGetUUID*"
MOST = "nvmlDeviceGetMaxMigDeviceCount*"
INSTANCE = "nvmlDeviceGetMigDeviceHandleByIndex*"
ERRORS = [("GPU_IS_LOST", "DeviceLost"), ("UNKNOWN", "NVMLError"), ("TIMEOUT", "Timeout")]
each_error = pytest.mark.parametrize(("error", "reason"), ERRORS, ids=[one for one, _ in ERRORS])


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "driver", Driver((ONE, TWO)))


def told(report: Any) -> list[tuple[str, str | None]]:
    return [(gpu["uuid"], gpu["unknown"]) for gpu in report["gpus"]]


@each_error
@pytest.mark.parametrize("function", [HANDLE, UUID])
def test_a_card_that_failed_before_the_start_is_listed_by_its_index(
    node: Node, function: str, error: str, reason: str
) -> None:
    write_faults(node.folder, [Fault(error, function, device="1")])
    with node.hold(100, "1"), Sampling(node.folder, agent=True) as sampling:
        assert told(sampling.sample()) == [(ONE.uuid, None), ("index-1", reason)]
        write_faults(node.folder, [])
        assert told(sampling.sample()) == [(ONE.uuid, None), (TWO.uuid, None)]


@each_error
@pytest.mark.parametrize("function", [HANDLE, UUID])
def test_a_card_that_was_seen_keeps_its_name(
    node: Node, function: str, error: str, reason: str
) -> None:
    with Sampling(node.folder, agent=True) as sampling:
        sampling.sample()
        write_faults(node.folder, [Fault(error, function, device="1")])
        assert told(sampling.sample()) == [(ONE.uuid, None), (TWO.uuid, reason)]


def test_a_card_without_a_name_of_its_model_is_measured(node: Node) -> None:
    write_faults(node.folder, [Fault("UNKNOWN", "nvmlDeviceGetName")])
    with node.hold(100), Sampling(node.folder, agent=True) as sampling:
        report = sampling.sample()
    assert told(report) == [(ONE.uuid, None), (TWO.uuid, None)]
    assert report["gpus"][0]["usedBytes"] == 100 * MIB


@each_error
def test_an_instance_whose_handle_fails_is_unknown(node: Node, error: str, reason: str) -> None:
    node.use(Driver((DIVIDED,)))
    with Sampling(node.folder, agent=True) as sampling:
        assert told(sampling.sample()) == [(DIVIDED.uuid, None), (SLICE.uuid, None)]
        write_faults(node.folder, [Fault(error, INSTANCE)])
        assert (SLICE.uuid, reason) in told(sampling.sample())
    with Sampling(node.folder, agent=True) as started_later:
        assert (f"{DIVIDED.uuid}/0", reason) in told(started_later.sample())


@each_error
def test_the_instances_of_a_card_that_is_lost_are_unknown_too(
    node: Node, error: str, reason: str
) -> None:
    node.use(Driver((DIVIDED,)))
    with Sampling(node.folder, agent=True) as sampling:
        sampling.sample()
        write_faults(node.folder, [Fault(error, HANDLE)])
        assert told(sampling.sample()) == [(DIVIDED.uuid, reason), (SLICE.uuid, reason)]


@each_error
def test_a_card_that_does_not_say_whether_it_is_divided_counts_no_processes(
    node: Node, error: str, reason: str
) -> None:
    node.use(Driver((DIVIDED,)))
    with node.hold(100, SLICE.uuid), Sampling(node.folder, agent=True) as sampling:
        assert len(sampling.sample()["processes"]) == 1
        write_faults(node.folder, [Fault(error, MOST)])
        report = sampling.sample()
    assert told(report) == [(DIVIDED.uuid, reason), (SLICE.uuid, reason)]
    assert report["processes"] == []


def test_an_index_that_no_instance_has_is_no_instance(node: Node) -> None:
    node.use(Driver((DIVIDED,)))
    write_faults(node.folder, [Fault("NOT_FOUND", INSTANCE)])
    with Sampling(node.folder, agent=True) as sampling:
        assert told(sampling.sample()) == [(DIVIDED.uuid, None)]


def test_a_library_that_knows_no_card_is_no_picture(node: Node) -> None:
    node.use(Driver(()))
    with Sampling(node.folder, agent=True) as sampling:
        assert sampling.sample()["unknown"] == "NoNVMLInSidecar"

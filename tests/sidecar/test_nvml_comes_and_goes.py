"""Cards are lost and found, drivers replaced, calls hang: what is reported meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from devcluster.simulated_driver import MIB, Driver, Fault, numbered_device, write_faults
from gpumem_sidecar.assignments import Device, Given
from gpumem_sidecar.attribution import Viewpoint
from gpumem_sidecar.nvml import LOST_SECONDS, RETRY_SECONDS, ROUTINE_SECONDS
from gpumem_sidecar.pod_resources import Answer
from gpumem_sidecar.reading import Card, Reading
from gpumem_sidecar.sampler import Sampler
from sampling import Sampling, amounts
from simulated_driver.node import Node

ONE, TWO = numbered_device(0), numbered_device(1)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "driver", Driver((ONE, TWO)))


def test_a_lost_card_is_named_and_unknown_and_then_back(node: Node) -> None:
    with node.hold(100, "1") as held, Sampling(node.folder, agent=True) as sampling:
        assert sampling.sample()["gpus"][1]["usedBytes"] == 100 * MIB

        write_faults(node.folder, [Fault("GPU_IS_LOST", device="1")])
        lost = sampling.sample()
        assert [(gpu["uuid"], gpu["unknown"]) for gpu in lost["gpus"]] == [
            (ONE.uuid, None),
            (TWO.uuid, "DeviceLost"),
        ]
        assert lost["gpus"][1]["usedBytes"] is None
        assert lost["gpus"][1]["model"] == "Simulated H200"

        write_faults(node.folder, [])
        assert amounts(sampling.sample(advance=LOST_SECONDS)) == [(held.pid, 100 * MIB)]


def test_a_driver_that_goes_away_is_found_again(node: Node) -> None:
    with Sampling(node.folder, agent=True) as sampling:
        assert sampling.sample()["unknown"] is None
        write_faults(node.folder, [Fault("UNINITIALIZED")])
        assert sampling.sample()["unknown"] == "NVMLError"
        write_faults(node.folder, [Fault("DRIVER_NOT_LOADED", "nvmlInit*")])
        assert sampling.sample(advance=RETRY_SECONDS)["unknown"] == "NoNVMLInSidecar"
        write_faults(node.folder, [])
        back = sampling.sample(advance=RETRY_SECONDS)
    assert back["unknown"] is None
    assert len(back["gpus"]) == 2


def test_a_start_that_fails_is_not_tried_all_the_time(node: Node) -> None:
    write_faults(node.folder, [Fault("UNKNOWN", "nvmlInit*")])
    with Sampling(node.folder, agent=True) as sampling:
        sampling.sample()
        write_faults(node.folder, [])
        assert sampling.sample(advance=RETRY_SECONDS / 2)["unknown"] == "NVMLError"
        assert sampling.sample(advance=RETRY_SECONDS)["unknown"] is None


def test_a_driver_that_is_replaced_under_it_asks_for_a_new_process(node: Node) -> None:
    mismatch = [Fault("LIB_RM_VERSION_MISMATCH")]
    with Sampling(node.folder, agent=True) as sampling:
        assert sampling.sample()["outdated"] is False
        write_faults(node.folder, mismatch)
        report = sampling.sample()
    assert (report["unknown"], report["gpus"], report["outdated"]) == ("NVMLError", [], True)

    with Sampling(node.folder, agent=True) as fresh:
        assert fresh.sample()["outdated"] is False, "no new process can help: it was so before"


def test_a_new_version_of_the_driver_is_told(node: Node) -> None:
    with Sampling(node.folder, agent=True) as sampling:
        sampling.sample()
        node.use(Driver((ONE, TWO), version="615.71.09"))
        assert sampling.sample()["driverVersion"] == "615.71.09-simulated"


def test_a_card_that_was_added_is_seen_after_a_while(node: Node) -> None:
    node.use(Driver((ONE,)))
    with Sampling(node.folder, agent=True) as sampling:
        assert len(sampling.sample()["gpus"]) == 1
        node.use(Driver((ONE, TWO)))
        found = sampling.sample(advance=ROUTINE_SECONDS)
    assert [gpu["uuid"] for gpu in found["gpus"]] == [ONE.uuid, TWO.uuid]


def test_a_card_that_the_kernel_module_lists_is_seen_at_once(node: Node, tmp_path: Path) -> None:
    node.use(Driver((ONE,)))
    cards = tmp_path / "gpus"
    (cards / "0000:01:00.0").mkdir(parents=True)
    with Sampling(node.folder, agent=True, cards_folder=cards) as sampling:
        assert len(sampling.sample()["gpus"]) == 1
        node.use(Driver((ONE, TWO)))
        assert len(sampling.sample(advance=RETRY_SECONDS)["gpus"]) == 1, "NVML counts at its start"
        (cards / "0000:02:00.0").mkdir()
        assert len(sampling.sample()["gpus"]) == 2


def test_a_card_that_nvml_can_not_count_yet_is_counted_a_minute_later(
    node: Node, tmp_path: Path
) -> None:
    node.use(Driver((ONE,)))
    cards = tmp_path / "gpus"
    cards.mkdir()
    with Sampling(node.folder, agent=True, cards_folder=cards) as sampling:
        sampling.sample()
        (cards / "0000:02:00.0").mkdir()
        assert len(sampling.sample(advance=RETRY_SECONDS)["gpus"]) == 1
        node.use(Driver((ONE, TWO)))
        assert len(sampling.sample()["gpus"]) == 1
        assert len(sampling.sample(advance=LOST_SECONDS)["gpus"]) == 2


@pytest.mark.parametrize(("given", "asks"), [("GPU-0", False), ("GPU-1", True)])
def test_a_gpu_that_the_kubelet_gave_and_nvml_does_not_list_is_looked_for(
    given: str, asks: bool
) -> None:
    counted: list[bool] = []
    pod = Given("team", "train", "main", (Device("nvidia.com/gpu", given),))
    Sampler(
        lambda: Reading("580", None, (Card("GPU-0", 0),)),
        Viewpoint("NodeAgent"),
        given=lambda: Answer((pod,)),
        count_again=lambda: counted.append(True),
    ).sample()
    assert bool(counted) is asks


def test_a_card_that_was_taken_out_stays_lost_also_after_a_new_start_of_nvml(node: Node) -> None:
    with Sampling(node.folder, agent=True) as sampling:
        sampling.sample()
        node.use(Driver((ONE,)))
        for passed in (0, LOST_SECONDS, ROUTINE_SECONDS):
            gpus = sampling.sample(advance=passed)["gpus"]
            assert [(gpu["uuid"], gpu["unknown"]) for gpu in gpus] == [
                (ONE.uuid, None),
                (TWO.uuid, "DeviceLost"),
            ]


def test_a_hang_is_unknown_in_time_and_over_when_it_is_over(node: Node) -> None:
    with (
        node.hold(100, "0") as held,
        Sampling(node.folder, agent=True, patience_seconds=1) as sampling,
    ):
        assert amounts(sampling.sample()) == [(held.pid, 100 * MIB)]
        hang = Fault(function="nvmlDeviceGetMemoryInfo_v2", device="0", hang_milliseconds=2500)
        write_faults(node.folder, [hang])
        assert sampling.sample()["unknown"] == "Timeout"
        write_faults(node.folder, [])
        held.set(200)
        reports = [sampling.sample() for _ in range(3)]
    assert reports[0]["unknown"] == "Timeout", "it still waits for the call that hangs"
    known = [amounts(report) for report in reports if report["unknown"] is None]
    assert known, "the call is over at last"
    assert set(map(tuple, known)) == {((held.pid, 200 * MIB),)}, "a late answer tells of the past"

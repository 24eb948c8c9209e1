"""Every error that a node may answer with, on demand."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from devcluster.simulated_driver import (
    MIB,
    Driver,
    Fault,
    create_state,
    environment,
    numbered_device,
    write_driver,
    write_faults,
)
from patience import PATIENCE_SECONDS
from simulated_driver.node import NO_INSTANCE, RESERVED, Node

MEMORY = "nvmlDeviceGetMemoryInfo*"
LISTS = "nvmlDeviceGet*RunningProcesses*"


@pytest.mark.parametrize(
    "error",
    [
        "GPU_IS_LOST",
        "RESET_REQUIRED",
        "NOT_SUPPORTED",
        "NO_PERMISSION",
        "FUNCTION_NOT_FOUND",
        "UNKNOWN",
        "NO_DATA",
        "TIMEOUT",
    ],
)
def test_a_function_fails_for_one_card_and_for_no_other(node: Node, error: str) -> None:
    node.use(Driver((numbered_device(0), numbered_device(1))))
    write_faults(node.folder, [Fault(error, MEMORY, "1")])
    healthy, broken = node.observe()["cards"]
    assert healthy["memory"]["used"] == RESERVED
    assert broken["memory"] == broken["memory_v2"] == {"error": error}
    assert broken["compute"] == []


def test_a_lost_card_answers_nothing_at_all(node: Node) -> None:
    card = numbered_device(1)
    node.use(Driver((numbered_device(0), card)))
    write_faults(node.folder, [Fault("GPU_IS_LOST", device=card.uuid)])
    healthy, lost = node.observe()["cards"]
    assert healthy["uuid"] == numbered_device(0).uuid
    assert lost == {"error": "GPU_IS_LOST"}


def test_a_unified_memory_card_lists_processes_but_no_memory(node: Node) -> None:
    """As GB10, where nvmlDeviceGetMemoryInfo is not supported."""
    write_faults(node.folder, [Fault("NOT_SUPPORTED", MEMORY)])
    with node.hold(100) as held:
        card = node.card()
    assert card["memory"] == {"error": "NOT_SUPPORTED"}
    assert card["compute"] == [[held.pid, 100 * MIB, NO_INSTANCE, NO_INSTANCE]]


def test_memory_of_processes_that_is_not_available_is_none_and_not_zero(node: Node) -> None:
    write_faults(node.folder, [Fault(hides_process_memory=True)])
    with node.hold(100) as held:
        card = node.card()
    assert card["compute"] == [[held.pid, None, NO_INSTANCE, NO_INSTANCE]]
    assert "TypeError" in card["detail"]["error"], "pynvml puts its None into a C number"
    assert card["memory_v2"]["used"] == 100 * MIB


@pytest.mark.parametrize("error", ["LIB_RM_VERSION_MISMATCH", "DRIVER_NOT_LOADED", "UNKNOWN"])
def test_the_library_does_not_start(node: Node, error: str) -> None:
    write_faults(node.folder, [Fault(error, "nvmlInit*")])
    assert node.observe() == {"error": error}


def test_without_a_state_folder_no_driver_is_loaded(node: Node) -> None:
    (node.folder / "driver.conf").unlink()
    assert node.observe() == {"error": "DRIVER_NOT_LOADED"}


def test_a_hanging_function_answers_late_and_right(node: Node) -> None:
    write_faults(node.folder, [Fault(function="nvmlDeviceGetMemoryInfo", hang_milliseconds=300)])
    before = time.monotonic()
    card = node.card()
    assert time.monotonic() - before > 0.3
    assert card["memory"]["used"] == RESERVED


def test_a_hang_does_not_hold_up_other_threads(node: Node) -> None:
    write_faults(node.folder, [Fault(function=LISTS, hang_milliseconds=2000)])
    done = node.run(
        """
import pynvml, threading, time
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
hanging = threading.Thread(
    target=pynvml.nvmlDeviceGetComputeRunningProcesses_v3, args=(handle,), daemon=True
)
hanging.start()
before = time.monotonic()
for _ in range(100):
    pynvml.nvmlDeviceGetMemoryInfo(handle)
print(hanging.is_alive(), time.monotonic() - before < 1.9)
"""
    )
    assert done.stdout == "True True\n", done.stderr


def test_faults_end_when_they_are_taken_away(node: Node) -> None:
    write_faults(node.folder, [Fault("UNKNOWN", MEMORY)])
    assert node.card()["memory"] == {"error": "UNKNOWN"}
    write_faults(node.folder, [])
    assert node.card()["memory"]["used"] == RESERVED


CARDS_COME_AND_GO = """
import pynvml, sys

def count():
    return pynvml.nvmlDeviceGetCount()

def ask(index):
    try:
        return pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(index))[-1]
    except pynvml.NVMLError as error:
        return type(error).__name__

pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
print(count(), flush=True)
sys.stdin.readline()
print(count(), ask(0), ask(1))
try:
    pynvml.nvmlDeviceGetMemoryInfo(handle)
except pynvml.NVMLError as error:
    print(type(error).__name__)
pynvml.nvmlShutdown()
pynvml.nvmlInit()
print(count(), ask(0), ask(1))
"""


def test_cards_that_come_and_go_are_counted_at_the_next_start(node: Node) -> None:
    caller = subprocess.Popen(
        [sys.executable, "-c", CARDS_COME_AND_GO],
        env=environment(node.folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert caller.stdout is not None
    assert caller.stdout.readline() == "1\n"
    write_driver(node.folder, Driver((numbered_device(2), numbered_device(3))))
    out, _ = caller.communicate("\n", timeout=PATIENCE_SECONDS)
    assert out.splitlines() == [
        "1 NVMLError_GpuIsLost NVMLError_InvalidArgument",
        "NVMLError_GpuIsLost",
        "2 2 3",
    ]


def test_a_value_that_would_break_the_file_is_refused(node: Node) -> None:
    with pytest.raises(ValueError, match="holds a tab or newline"):
        create_state(node.folder, Driver((), version="580\t159"))

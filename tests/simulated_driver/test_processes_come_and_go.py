"""Who is dead is never listed, however it died; who lives is never lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from devcluster.failure import ClusterError
from devcluster.sandbox import new_namespace
from devcluster.simulated_driver import MIB, Driver, build, environment, numbered_device
from simulated_driver.node import TOTAL, Node, needs_namespaces, process

CONCURRENT = 24


def records(node: Node) -> list[Path]:
    return sorted((node.folder / "allocations").glob("*.record"))


def test_an_ended_process_leaves_nothing_behind(node: Node) -> None:
    with node.hold(100):
        assert len(records(node)) == 1
    assert node.card()["compute"] == []
    assert records(node) == []


def test_a_killed_process_is_gone_at_once_though_its_record_stays(node: Node) -> None:
    held = node.hold(100)
    held.kill()
    assert len(records(node)) == 1
    card = node.card()
    assert card["compute"] == []
    assert card["memory_v2"]["used"] == 0


def test_a_zombie_holds_no_memory(node: Node) -> None:
    program = str(build().program)
    held = subprocess.Popen(
        [program, "--gpu", "0", "--mib", "100"],
        env=environment(node.folder),
        stdout=subprocess.PIPE,
    )
    assert held.stdout is not None
    held.stdout.readline()
    held.kill()
    os.waitid(os.P_PID, held.pid, os.WEXITED | os.WNOWAIT)
    assert Path(f"/proc/{held.pid}/stat").exists(), "nobody has waited for it yet"
    assert node.card()["compute"] == []
    held.communicate()


@needs_namespaces
def test_a_container_that_is_killed_frees_its_memory(node: Node) -> None:
    held = node.hold(100, prefix=new_namespace())
    assert node.card()["memory_v2"]["used"] == 100 * MIB
    held.kill()
    assert node.card()["memory_v2"]["used"] == 0


def test_a_reused_pid_is_not_taken_for_the_process_that_had_it(node: Node) -> None:
    """The record of a killed process, rewritten to the PID of one that lives."""
    held = node.hold(100)
    held.kill()
    [record] = records(node)
    record.write_text(record.read_text().replace(f"pid={held.pid}\t", f"pid={os.getpid()}\t"))
    assert node.card()["compute"] == []


def test_a_new_process_clears_away_the_dead(node: Node) -> None:
    node.hold(100).kill()
    [dead] = records(node)
    with node.hold(50):
        [living] = records(node)
    assert living != dead
    assert not dead.with_suffix(".lock").exists()


def test_a_stopped_process_still_holds_its_memory(node: Node) -> None:
    with node.hold(100) as held:
        os.kill(held.pid, signal.SIGSTOP)
        try:
            assert node.card()["compute"] == [process(held.pid, 100)]
        finally:
            os.kill(held.pid, signal.SIGCONT)


def test_writers_at_once_never_overfill_a_card(node: Node) -> None:
    """Room for ten of them: ten get it, whichever they are.

    Many records of the dead make looking for room slow, and so the moments before taking it long.
    """
    node.use(Driver((numbered_device(0, total_mib=615 + 10 * 1000),)))
    node.hold(1).kill()
    [dead] = records(node)
    for number in range(1000):
        dead.with_name(f"dead-{number}.record").write_text(dead.read_text())
    outcomes: list[object] = [None] * CONCURRENT

    def take(place: int) -> None:
        try:
            outcomes[place] = node.hold(1000)
        except ClusterError as error:
            outcomes[place] = str(error)

    threads = [threading.Thread(target=take, args=(place,)) for place in range(CONCURRENT)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refused = [outcome for outcome in outcomes if isinstance(outcome, str)]
    card = node.card()
    for held in outcomes:
        if not isinstance(held, str):
            held.end()  # type: ignore[attr-defined]
    assert len(card["compute"]) == 10
    assert card["memory_v2"]["free"] == 0
    assert len(refused) == CONCURRENT - 10
    assert all("0 MiB are free on the card" in text for text in refused)


def test_a_reader_never_sees_half_of_a_change(node: Node) -> None:
    """One process moves between two amounts while another reads all the time."""
    code = """
import pynvml, sys
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
print("reading", flush=True)
amounts = set()
while not amounts >= {10, 20000}:
    [one] = pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)
    amounts.add(one.usedGpuMemory >> 20)
for _ in range(300):
    [one] = pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)
    amounts.add(one.usedGpuMemory >> 20)
print(sorted(amounts))
"""
    with node.hold(10) as held:
        reader = subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment(node.folder),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert reader.stdout is not None
        reader.stdout.readline()
        while reader.poll() is None:
            held.set(20000)
            held.set(10)
        assert reader.communicate()[0] == "[10, 20000]\n"


def test_a_process_may_hold_memory_and_measure_itself(node: Node) -> None:
    """Reading must not touch its own locks: the kernel would drop them."""
    code = """
import ctypes, os, pynvml
library = ctypes.CDLL("libnvidia-ml.so.1")
hold = library.gpumem_simulated_hold
hold.restype = ctypes.c_void_p
hold.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64]
first = hold(b"0", b"compute", 100 << 20, 0)
second = hold(b"0", b"compute", 30 << 20, 0)
pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)

def mine():
    return [
        one.usedGpuMemory >> 20
        for one in pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)
        if one.pid == os.getpid()
    ]

print(mine(), mine())
if os.fork() == 0:
    print("child", mine(), flush=True)
    os._exit(0)
os.wait()
library.gpumem_simulated_resize.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64]
print(library.gpumem_simulated_resize(first, 1 << 20, 0), mine())
print(library.gpumem_simulated_resize(first, 1 << 50, 0), mine())
print(hold(b"0", b"compute", 1 << 50, 0), mine())
library.gpumem_simulated_release.argtypes = [ctypes.c_void_p]
library.gpumem_simulated_release(first)
library.gpumem_simulated_release(second)
print(mine())
"""
    done = node.run(code)
    assert done.stdout.splitlines() == [
        "[130] [130]",
        "child []",
        "1 [31]",
        "0 [31]",
        "None [31]",
        "[]",
    ], done.stderr


@pytest.mark.parametrize("amount", [TOTAL // MIB, 10**8])
def test_what_no_card_has_is_refused(node: Node, amount: int) -> None:
    with pytest.raises(ClusterError, match="out of memory"):
        node.hold(amount)


@needs_namespaces
def test_who_only_measures_may_have_the_folder_read_only(node: Node) -> None:
    mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    read_only = ("unshare", "--mount", "sh", "-ec", mount, str(node.folder))
    with node.hold(100) as held:
        assert node.card(read_only)["compute"] == [process(held.pid, 100)]
    refused = subprocess.run(
        [*read_only, str(build().program), "--gpu", "0", "--mib", "1"],
        env=environment(node.folder),
        capture_output=True,
        text=True,
    )
    assert refused.returncode == 69
    assert "to a folder with driver.conf that this user may write to" in refused.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to start a process of another user")
def test_processes_of_other_users_take_part_and_clear_away_roots_dead(shared_node: Node) -> None:
    program = shared_node.folder / "program"
    shutil.copy(build().program, program)
    shared_node.hold(100).kill()
    nobody = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
    held = subprocess.Popen(
        [*nobody, str(program), "--gpu", "0", "--mib", "7"],
        env=environment(shared_node.folder),
        stdout=subprocess.PIPE,
    )
    assert held.stdout is not None
    assert held.stdout.readline()
    assert shared_node.card()["compute"] == [process(held.pid, 7)]
    assert len(records(shared_node)) == 1
    with shared_node.hold(8):
        assert shared_node.card()["memory_v2"]["used"] == 15 * MIB
    held.terminate()
    held.communicate()
    assert records(shared_node) == []

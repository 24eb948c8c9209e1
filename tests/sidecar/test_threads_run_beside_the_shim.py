"""Threads of a program use GPUs while others are measured, with and without a global lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_container import GIB, MIB, GpuContainer
from shimmed import interpreters

PROGRAM = """
import cupy, threading, torch
from gpumem_shim.state import own_file
begun, allocating, seen = threading.Barrier(7), threading.Lock(), []
def use(framework):
    begun.wait()
    for number in range(1, 21):
        with allocating: framework.allocate(64 * number)
def measure():
    begun.wait()
    for _ in range(50): refresh()
def read():
    begun.wait()
    for _ in range(1000):
        try: seen.append(json.load(open("/".join(own_file()) + ".json"))["pid"] == os.getpid())
        except FileNotFoundError: pass
targets = [(use, torch), (use, cupy), (measure,), (measure,), (measure,), (read,), (read,)]
threads = [threading.Thread(target=target, args=rest) for target, *rest in targets]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(told()))
print(json.dumps(all(seen)))
print(json.dumps(getattr(sys, "_is_gil_enabled", lambda: True)()))
"""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("version", interpreters())
def test_caps_add_up_and_no_lock_comes_back(tmp_path: Path, version: str) -> None:
    told, whole, locked = GpuContainer(tmp_path, interpreters()[version]).run(PROGRAM)
    caps = [cap["capBytes"] for one in told["frameworks"] for cap in one["caps"]]
    assert len(caps) == 2
    assert 7 * GIB - 32 * MIB <= sum(caps) <= 7 * GIB
    assert told["gpus"][0]["bytes"] == (2 * 20 * 64 + 518) * MIB
    assert whole
    assert locked is not version.endswith("t")


@pytest.mark.parametrize("version", interpreters())
def test_a_program_that_waits_for_all_threads_ends(tmp_path: Path, version: str) -> None:
    container = GpuContainer(tmp_path, interpreters()[version])
    names = container.run(
        "import threading, torch\n"
        "torch.allocate(64)\n"
        "for thread in threading.enumerate():\n"
        "    if thread is not threading.current_thread(): thread.join()\n"
        "print(json.dumps([thread.name for thread in threading.enumerate()]))\n"
        "print(json.dumps(threading.active_count()))\n"
    )
    assert names == [["MainThread"], 1]


def test_where_no_thread_can_be_had_the_cap_holds_and_the_next_use_tries_again(
    tmp_path: Path,
) -> None:
    container = GpuContainer(tmp_path, gpus=2)
    tried = container.run(
        "import _thread, torch\n"
        "from gpumem_shim import thread\n"
        "original, tried = _thread.start_new_thread, []\n"
        "def refused(*arguments):\n"
        "    tried.append('refused')\n"
        '    raise RuntimeError("can\'t start new thread")\n'
        "_thread.start_new_thread = refused\n"
        "torch.cuda.set_device(0); torch.allocate(64)\n"
        "assert sorted(torch._C.fractions) == [0]\n"
        "_thread.start_new_thread = lambda *them: (tried.append('had'), original(*them))\n"
        "torch.cuda.set_device(1); torch.allocate(64)\n"
        "print(json.dumps([sorted(torch._C.fractions), tried[0], tried[-1]]))\n"
    )
    assert tried == [[0, 1], "refused", "had"]

"""The program that holds memory, as a person or a container runs it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from devcluster.failure import ClusterError
from devcluster.simulated_driver import MIB, Allocation, Driver, build, environment, numbered_device
from devcluster.simulated_driver.build import find_compiler
from patience import PATIENCE_SECONDS
from simulated_driver.node import Node


def start(node: Node, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(build().program), *arguments],
        env=environment(node.folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def first_line(started: subprocess.Popen[str]) -> str:
    assert started.stdout is not None
    return started.stdout.readline()


def test_it_says_what_it_holds_and_ends_cleanly_on_sigterm(node: Node) -> None:
    held = start(node, "--gpu", "0", "--mib", "512", "--kind", "mps", "--managed-mib", "3")
    uuid = numbered_device(0).uuid
    assert first_line(held) == f"holding 512 MiB mps, managed 3 MiB, of {uuid} as pid {held.pid}\n"
    held.send_signal(signal.SIGTERM)
    assert held.communicate() == ("", "")
    assert held.returncode == 0
    assert list((node.folder / "allocations").glob("*.record")) == []


def test_the_end_of_its_input_leaves_it_holding(node: Node) -> None:
    held = subprocess.Popen(
        [str(build().program), "--gpu", "0", "--mib", "512"],
        env=environment(node.folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    first_line(held)
    assert node.card()["memory_v2"]["used"] == 512 * MIB
    assert held.poll() is None
    held.terminate()
    held.communicate()


def test_it_obeys_and_explains_what_it_does_not_understand(node: Node) -> None:
    held = start(node, "--gpu", "0", "--mib", "1")
    out, errors = held.communicate(
        "set 20\nmanaged 5\nwhat?\nset 30\nend\n", timeout=PATIENCE_SECONDS
    )
    assert [line.split(",")[0] for line in out.splitlines()] == [
        "holding 1 MiB compute",
        "holding 20 MiB compute",
        "holding 20 MiB compute",
        "holding 30 MiB compute",
    ]
    assert errors == "simulated-alloc: commands are `set MIB`, `managed MIB`, `end`, not what?\n"
    assert held.returncode == 0


def test_growing_too_far_ends_it_as_out_of_memory(node: Node) -> None:
    node.use(Driver((numbered_device(0, total_mib=1615),)))
    held = start(node, "--gpu", "0", "--mib", "900", "--grow-mib-per-second", "500")
    before = time.monotonic()
    _, errors = held.communicate(timeout=PATIENCE_SECONDS)
    assert held.returncode == 2
    assert "out of memory: asked for" in errors
    assert 0.1 < time.monotonic() - before < 5


def test_it_ends_after_its_time(node: Node) -> None:
    before = time.monotonic()
    held = start(node, "--gpu", "0", "--mib", "1", "--seconds", "0.3")
    assert held.wait(10) == 0
    assert time.monotonic() - before >= 0.3
    held.communicate()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--gpu", "0"],
        ["--mib", "1"],
        ["--gpu", "0", "--mib", "much"],
        ["--gpu", "0", "--mib", "-1"],
        ["--gpu", "0", "--mib", "1", "--kind", "video"],
        ["--gpu", "0", "--mib", "1", "extra"],
    ],
)
def test_wrong_usage_is_answered_with_the_right_one(node: Node, arguments: list[str]) -> None:
    done = start(node, *arguments)
    _, errors = done.communicate(timeout=PATIENCE_SECONDS)
    assert done.returncode == 64
    assert "usage: simulated-alloc --gpu UUID|INDEX --mib N" in errors


@pytest.mark.parametrize("gpu", ["1", "GPU-none", "-1", ""])
def test_a_card_that_is_not_there_is_named(node: Node, gpu: str) -> None:
    done = start(node, "--gpu", gpu, "--mib", "1")
    _, errors = done.communicate(timeout=PATIENCE_SECONDS)
    assert done.returncode == 69
    assert f"{gpu} is no card of this driver" in errors


def test_a_missing_folder_is_named_with_the_variable_to_set(node: Node) -> None:
    missing = node.folder / "nowhere"
    with pytest.raises(ClusterError, match="nowhere cannot be used: set SIMULATED_NVIDIA_DRIVER"):
        Allocation(missing, "0", 1)


def test_without_a_compiler_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(ClusterError) as missing:
        find_compiler()
    assert "found none of cc, gcc, clang" in str(missing.value)
    assert "apt-get install gcc libc6-dev" in str(missing.value)


def test_it_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built = build()
    changed = built.library.stat().st_mtime_ns
    assert build() == built
    assert built.library.stat().st_mtime_ns == changed
    assert built.program.exists()


def test_the_library_says_what_it_is() -> None:
    assert b"simulated NVIDIA driver of gpu-memory-operator" in build().library.read_bytes()


def test_a_shell_gets_cards_with_one_command(tmp_path: Path) -> None:
    script = f"""
eval "$({sys.executable} -m devcluster.simulated_driver {tmp_path}/gpus --cards 2)"
simulated-alloc --gpu 1 --mib 64 --seconds 0.2
{sys.executable} -c 'import pynvml; pynvml.nvmlInit(); print(pynvml.nvmlDeviceGetCount())'
"""
    done = subprocess.run(
        ["bash", "-euc", script],
        env=environment(tmp_path) | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    holding, count = done.stdout.splitlines()
    assert holding.startswith("holding 64 MiB compute")
    assert count == "2"

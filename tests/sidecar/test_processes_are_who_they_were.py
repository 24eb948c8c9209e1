"""Process ids are used again: what is attributed is the process that was listed, or nobody."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpumem_sidecar.nvml import ticks_after_boot
from gpumem_sidecar.processes import Facts, facts_of
from patience import PATIENCE_SECONDS


def write_process(folder: Path, *, start: int, name: str = "python") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    fields = ["S", *["0"] * 18, str(start), "0"]
    (folder / "stat").write_text(f"7 ({name}) {' '.join(fields)}\n")
    (folder / "status").write_text("Name:\tpython\nNSpid:\t7\t3\n")
    (folder / "cgroup").write_text("0::/kubepods/pod\n")
    return folder


@pytest.mark.parametrize("name", ["python", "a b", ") S 1 (", "", "\udcff"])
def test_a_process_is_read_whatever_it_calls_itself(tmp_path: Path, name: str) -> None:
    folder = write_process(tmp_path / "7", start=99, name="x")
    stat = (folder / "stat").read_bytes().replace(b"(x)", b"(%s)" % os.fsencode(name))
    (folder / "stat").write_bytes(stat)
    assert facts_of(7, str(tmp_path)) == Facts(99, "0::/kubepods/pod\n", 3)


def test_a_process_that_is_gone_is_nobody(tmp_path: Path) -> None:
    assert facts_of(7, str(tmp_path)) is None


@pytest.mark.parametrize("missing", ["stat", "status", "cgroup"])
def test_a_process_that_goes_while_it_is_read_is_nobody(tmp_path: Path, missing: str) -> None:
    (write_process(tmp_path / "7", start=99) / missing).unlink()
    assert facts_of(7, str(tmp_path)) is None


def test_another_process_under_the_same_id_is_nobody(tmp_path: Path) -> None:
    """The cgroup is a pipe: whoever reads it waits here until the process was replaced."""
    folder = write_process(tmp_path / "7", start=99)
    (folder / "cgroup").unlink()
    os.mkfifo(folder / "cgroup")
    reading = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from gpumem_sidecar.processes import facts_of;"
            "print(facts_of(7, sys.argv[1]))",
            str(tmp_path),
        ],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "sidecar")},
        stdout=subprocess.PIPE,
        text=True,
    )
    with (folder / "cgroup").open("w") as cgroup:
        # Opened on both ends: the first look at the start time is over.
        write_process_start(folder, 100)
        cgroup.write("0::/other\n")
    assert reading.communicate(timeout=PATIENCE_SECONDS)[0] == "None\n"


def write_process_start(folder: Path, start: int) -> None:
    stat = (folder / "stat").read_text().replace(" 99 ", f" {start} ")
    (folder / "stat").write_text(stat)


def test_start_times_are_on_the_clock_of_the_lists() -> None:
    own = facts_of(os.getpid())
    assert own is not None
    assert own.start_time <= ticks_after_boot()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        young = facts_of(child.pid)
        assert young is not None
        assert ticks_after_boot() - 1000 < young.start_time <= ticks_after_boot()

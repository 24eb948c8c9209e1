"""Process ids are used again: what is attributed is the process that was listed, or nobody."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpumem_sidecar.nvml import ticks_after_boot
from gpumem_sidecar.processes import EXITING, Facts, Unreadable, facts_of
from patience import PATIENCE_SECONDS, eventually


def write_process(folder: Path, *, start: int, name: str = "python", flags: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    fields = ["S", *["0"] * 5, str(flags), *["0"] * 12, str(start), "0"]
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


LETTERS_THAT_END_LINES_ELSEWHERE = ["\x0b", "\x0c", "\r", "\x1c", "\x1d", "\x1e", "\x85", "\u2028"]


@pytest.mark.parametrize("letter", LETTERS_THAT_END_LINES_ELSEWHERE, ids=ascii)
@pytest.mark.parametrize("text", ["NSpid: x", "NSpid:\t1"])
def test_a_name_that_looks_like_lines_is_a_name(letter: str, text: str) -> None:
    """PR_SET_NAME is 15: a real process, so that what the kernel escapes is escaped."""
    program = "import ctypes, sys; ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0);"
    command = [sys.executable, "-c", f"{program} print(flush=True); input()", letter + text]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as renamed:
        assert renamed.stdout is not None
        renamed.stdout.readline()
        facts = facts_of(renamed.pid)
        renamed.communicate(b"\n")
    assert isinstance(facts, Facts)
    assert facts.inner_pid == renamed.pid


def test_of_a_process_whose_first_thread_has_ended_a_living_one_is_asked(tmp_path: Path) -> None:
    """With cgroup v1 the kernel says `/` of a thread that has ended."""
    folder = write_process(tmp_path / "7", start=99, flags=EXITING)
    (folder / "cgroup").write_text("4:memory:/\n")
    for thread, flags in {7: EXITING, 8: EXITING, 9: 0}.items():
        write_process(folder / "task" / str(thread), start=99, flags=flags)
        (folder / "task" / str(thread) / "cgroup").write_text(f"4:memory:/of-{thread}\n")
    assert facts_of(7, str(tmp_path)) == Facts(99, "4:memory:/of-9\n", 3)


def test_a_real_process_is_read_after_its_first_thread_has_ended() -> None:
    program = (
        "import ctypes, sys, threading; threading.Thread(target=sys.stdin.read).start();"
        "print(flush=True); ctypes.CDLL(None).syscall(60, 0)"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        before = facts_of(process.pid)
        assert process.stdout is not None
        process.stdout.readline()
        eventually(lambda: "(zombie)" in Path(f"/proc/{process.pid}/status").read_text())
        after = facts_of(process.pid)
        process.kill()
    assert isinstance(after, Facts)
    assert after == before


def test_a_process_that_is_gone_is_nobody(tmp_path: Path) -> None:
    assert facts_of(7, str(tmp_path)) is None


@pytest.mark.parametrize("missing", ["stat", "status", "cgroup"])
def test_a_process_that_is_there_and_does_not_tell_is_not_gone(
    tmp_path: Path, missing: str
) -> None:
    (write_process(tmp_path / "7", start=99) / missing).unlink()
    assert isinstance(facts_of(7, str(tmp_path)), Unreadable)
    shutil.rmtree(tmp_path / "7")
    assert facts_of(7, str(tmp_path)) is None


@pytest.mark.parametrize("stat", ["", "7 (python) S", "7 (python) S x" + " x" * 30])
def test_a_process_whose_numbers_make_no_sense_is_not_gone(tmp_path: Path, stat: str) -> None:
    (write_process(tmp_path / "7", start=99) / "stat").write_text(stat)
    assert isinstance(facts_of(7, str(tmp_path)), Unreadable)


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
    assert isinstance(own, Facts)
    assert own.start_time <= ticks_after_boot()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        young = facts_of(child.pid)
        assert isinstance(young, Facts)
        assert ticks_after_boot() - 1000 < young.start_time <= ticks_after_boot()

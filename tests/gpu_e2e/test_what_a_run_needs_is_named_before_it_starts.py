"""One line, before a node is started: what is not here, and what to do."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_e2e.requirements import NEEDS_GIB, CanNotRunError, gib_needed, programs
from gpu_e2e.run import ROUNDS

ROOT = Path(__file__).parent.parent.parent
NO_DRIVER = "No NVIDIA driver here (libnvidia-ml.so.1). Install it, or run with --simulated."


def driver_is_here() -> bool:
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


@pytest.mark.skipif(driver_is_here(), reason="this machine has an NVIDIA driver")
def test_without_a_driver_it_says_so_in_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpu_e2e"],
        cwd=ROOT,
        env={"PYTHONPATH": "operator:sidecar:tests:.", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"gpu_e2e: {NO_DRIVER}\n"


def test_a_python_without_torch_is_named_with_the_option_for_another(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)

    with pytest.raises(CanNotRunError) as told:
        programs(str(bare))

    assert str(told.value) == (
        f"{bare} has no torch and no framework. Name a Python that has it:"
        " --python /path/to/python."
    )


def test_a_python_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CanNotRunError, match=r"none does not run: .*Name another with --python\."):
        programs(str(tmp_path / "none"))


def test_the_memory_of_scenarios_that_run_at_one_time_is_added() -> None:
    assert gib_needed([["limits", "queue"], ["speed"]]) == NEEDS_GIB["limits"] + NEEDS_GIB["queue"]
    names = {scenario.__name__ for together in ROUNDS for scenario in together}
    assert names == set(NEEDS_GIB)

"""The bench of the shim's start: every interpreter of PATH, and figures that are times."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench import shim


def test_a_quick_run_finds_this_interpreter(tmp_path: Path) -> None:
    text = shim.run(quick=True, folder=tmp_path)
    found = json.loads((tmp_path / "shim.json").read_text())
    mine = f"Python {sys.version_info[0]}.{sys.version_info[1]}, "
    assert [cost["what"] for cost in found if cost["what"].startswith(mine)] == [
        f"{mine}without a framework",
        f"{mine}with one",
    ]
    assert all(cost["unit"] == "ms" for cost in found)
    assert "| <= 2: " in text


def test_a_program_that_fails_is_no_figure() -> None:
    with pytest.raises(RuntimeError, match="ended with 3"):
        shim._cpu_milliseconds([sys.executable, "-c", "raise SystemExit(3)"], {})

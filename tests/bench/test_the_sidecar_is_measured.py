"""The bench of the sidecar: a quick run, and what it writes."""

from __future__ import annotations

import json
from pathlib import Path

from bench import sidecar


def test_a_quick_run_finds_memory_and_cpu(tmp_path: Path) -> None:
    text = sidecar.run(quick=True, folder=tmp_path)
    costs = json.loads((tmp_path / "sidecar.json").read_text())
    assert [cost["unit"] for cost in costs] == 2 * ["MiB", "MiB", "% of a core"]
    assert all(cost["value"] > 0 for cost in costs)
    assert "| <= 25: " in text

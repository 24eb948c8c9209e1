"""The bench of the sidecar: a quick run, and what it writes."""

from __future__ import annotations

import json
from pathlib import Path

from bench import sidecar


def test_a_quick_run_finds_memory_and_cpu(tmp_path: Path) -> None:
    costs = sidecar.measure(quick=True)
    assert [cost.unit for cost in costs] == ["MiB", "MiB", "% of a core"]
    assert all(cost.value > 0 for cost in costs)
    assert "| <= 25: " in sidecar.as_markdown(costs)
    assert len(json.loads(sidecar.write(costs, tmp_path).read_text())) == 3

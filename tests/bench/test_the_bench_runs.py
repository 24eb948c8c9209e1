"""The bench is code too: a quick run of all of it, on a real control plane."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.compare import Comparison, Plan
from bench.costs import Cost
from bench.load import Load
from bench.overuse_senders import why_no_group
from bench.readme import figures, read
from bench.report import Report
from devcluster.sandbox import why_not

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.cluster
def test_a_quick_run_fills_every_row(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench", "--quick", "--output", str(tmp_path)]
    path = {"PYTHONPATH": f"{REPOSITORY / 'operator'}:{REPOSITORY}"}
    result = subprocess.run(
        command, cwd=REPOSITORY, env=os.environ | path, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    found = json.loads((tmp_path / "admission.json").read_text())
    states = {row["plan"]["state"] for row in found["comparisons"]}
    assert states == {"up", "up, no policy or tenant", "hung", "stopped"}
    assert all(row["ratio"] > 0 for row in found["comparisons"])
    assert len(found["costs"]) == 3
    assert {"date", "machine", "Kubernetes", "kopf"} <= set(found["machine"])
    assert "| GPU pod | 32 clients, dry run | up |" in result.stdout
    assert "| GPU pod, each with its own variables | 1 client, dry run | up |" in result.stdout
    tenants = json.loads((tmp_path / "tenants.json").read_text())
    assert [cost["unit"] for cost in tenants] == ["per s", "x", "ms", "x", "ms"]
    scale = json.loads((tmp_path / "scale.json").read_text())
    assert [cost["unit"] for cost in scale] == ["s", "s", "MiB", "% of a core", "s"]
    sidecar = json.loads((tmp_path / "sidecar.json").read_text())
    assert [cost["unit"] for cost in sidecar] == 2 * [
        *("MiB", "MiB"),
        *("% of a core", "% of a core", "x"),
    ]
    assert all(cost["value"] > 0 for cost in sidecar)
    overuse = json.loads((tmp_path / "overuse.json").read_text())
    senders = [
        sender for sender, why in (("agent", why_no_group()), ("sidecar", why_not())) if not why
    ]
    assert [cost["what"].split(",")[0] for cost in overuse[::4]] == senders
    missing = 2 - len(senders)
    assert figures(read(tmp_path)).count("not measured") == missing


def test_the_median_of_the_ratios_counts_and_misses_are_marked() -> None:
    plan = Plan("GPU pod", Load(1), block=1, cycles=3, target=2.0)
    found = Comparison(plan, without_ms=1, with_ms=2, ratios=(1.5, 9.0, 2.1), slowest_ms=9)
    assert (found.ratio, found.good) == (2.1, False)
    report = Report({"date": "today"}, [found], [Cost("RSS", 59.0, "MiB", 60)])
    assert "| 2.10 | 1.50 to 9.00 | <= 2: MISSED |" in report.as_markdown()
    assert "| RSS | 59.00 MiB | <= 60: met |" in report.as_markdown()

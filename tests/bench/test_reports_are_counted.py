"""The bench of reports runs, and its figures are what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.reports import Rate, as_markdown, run


@pytest.mark.cluster
def test_the_bench_of_reports_runs(tmp_path: Path) -> None:
    text = run(quick=True, folder=tmp_path)
    kept, fresh = json.loads((tmp_path / "reports.json").read_text())
    assert (kept["reports"], fresh["reports"]) == (400, 80)
    assert kept["per_core"] > 0
    assert "connection kept" in text


@pytest.mark.parametrize(("cpu", "said"), [(1.0, "met"), (1.1, "MISSED")])
def test_the_target_is_per_second_of_processor_time(cpu: float, said: str) -> None:
    rates = [Rate("connection kept", 1000, 5.0, cpu), Rate("new connection", 10, 1.0, 1.0)]
    table = as_markdown(rates)
    assert f">= 1000: {said}" in table
    assert table.count("1000:") == 1

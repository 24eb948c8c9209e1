"""The README's table comes from what the parts wrote, misses and gaps included."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.compare import Comparison, Plan
from bench.costs import Cost, write
from bench.load import Load
from bench.readme import figures, main, read
from bench.report import Report
from bench.reports import Rate
from bench.reports import write as write_rates

MACHINE = {"date": "2026-12-01 10:00 UTC", "machine": "2 cores, A CPU", "Kubernetes": "v1.36.3"}


def compared(shape: str, load: Load, ratio: float, target: float, state: str = "up") -> Comparison:
    plan = Plan(shape, load, block=1, cycles=1, state=state, target=target)
    return Comparison(plan, without_ms=1, with_ms=ratio, ratios=(ratio,), slowest_ms=9)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    comparisons = [
        compared("GPU pod", Load(1), 1.9, 2.1),
        compared("GPU pod", Load(8), 2.2, 2.1),
        compared("GPU pod", Load(32), 2.1, 2.3),
        compared("GPU pod", Load(8, per_second=50), 1.5, 1.7),
        *(compared("CPU pod", Load(1), 1.05, 1.1, state) for state in ("up", "hung", "stopped")),
    ]
    costs = [Cost("CPU per 1,000 pods, 1 client, dry run", 0.5, "s", 0.4)]
    Report(MACHINE, comparisons, [*costs, Cost("RSS after", 59.0, "MiB", 60)]).write(tmp_path)
    return tmp_path


def test_each_row_has_its_figure_and_its_target(folder: Path) -> None:
    shim = [Cost(f"Python 3.{n}, without a framework", 1.0 + n / 10, "ms", 2) for n in (8, 11)]
    write(shim, folder, "shim")
    write_rates([Rate("connection kept", 1000, 5.0, 0.5)], folder)
    opened = Cost("gates opened per second, 500 pods that wait", 240.0, "per s", 100, least=True)
    ratios = [Cost(f"by one that warns, {n}", 1.0 + n / 10, "x") for n in (5, 8)]
    write([opened, *ratios, Cost("added", 3.0, "ms")], folder, "tenants")
    text = figures(read(folder))
    assert "| gates opened per second | 240 | >= 100: met |" in text
    assert "| create where room is reserved, 1 / 8 clients, ratio | 1.50 / 1.80 |  |" in text
    assert "| measured (2026-12-01, 2 cores, Kubernetes 1.36.3) |" in text
    assert "| GPU pod, 1 client / 8 clients, ratio | 1.90 / 2.20 | <= 2.1: missed |" in text
    assert "| GPU pod, 50 per second, ratio | 1.50 | <= 1.7: met |" in text
    assert "(1 client), ratio | 1.05 / 1.05 / 1.05 | <= 1.1: met |" in text
    assert "| CPU of the webhook per 1,000 pods | 0.5 s | <= 0.4 s: missed |" in text
    assert "| shim in a process without a framework | 2.1 ms | <= 2 ms: missed |" in text
    assert "per second and core | 2000 | >= 1000: met |" in text


def test_a_part_that_did_not_run_is_said_to_be_missing(folder: Path) -> None:
    assert "| CPU of the sidecar, median interval | not measured |  |" in figures(read(folder))


def test_without_a_run_the_next_step_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["bench.readme", "--output", str(tmp_path)])
    assert main() == 2
    assert "run `make bench` first" in capsys.readouterr().err

"""Rows of bench.real_gpu_frameworks as a page of the documentation, misses named as misses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bench.real_gpu_frameworks_page import main
from bench.real_gpu_runs import Check

PAGE = Path(__file__).parents[2] / "docs" / "frameworks-on-a-gpu.md"
ROWS = [
    Check("torch, 8 GiB: NVML peak", "never over the limit", "7828 of 8192 MiB", True),
    Check("  cap hits", ">= 1", "1", True),
    Check("cupy: usable", ">= 90 %", "51.0 %\nof a|b", False),
]


def printed(folder: Path, capsys: pytest.CaptureFixture[str], rows: list[Check]) -> list[str]:
    path = folder / "rows.json"
    path.write_text(json.dumps([row._asdict() for row in rows]))
    machine = ["--date", "2026-11-30", "--gpu", "A GPU", "--driver", "580.1"]
    main([str(path), *machine, "--release", "torch=2.11.0", "--release", "cupy=14.2.0"])
    return capsys.readouterr().out.splitlines()


def test_it_says_what_was_run_where_and_how_much_was_missed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(tmp_path, capsys, ROWS)
    head = " ".join(lines[2:4])
    assert "`python3 -m bench.real_gpu_frameworks --output rows.json`, 2026-11-30, A GPU" in head
    assert "driver 580.1, torch 2.11.0, cupy 14.2.0" in head
    assert "3 checks, 1 missed:" in lines
    assert "- cupy: usable: 51.0 % of a\\|b (expected >= 90 %)" in lines


def test_a_miss_is_marked_in_its_row_and_nothing_else_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(tmp_path, capsys, ROWS)
    assert lines[-3:] == [
        "| torch, 8 GiB: NVML peak | 7828 of 8192 MiB | never over the limit |",
        "| torch, 8 GiB: cap hits | 1 | >= 1 |",
        "| cupy: usable | **missed: 51.0 % of a\\|b** | >= 90 % |",
    ]


def test_a_run_without_misses_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "2 checks, 0 missed." in printed(tmp_path, capsys, ROWS[:2])


def test_the_page_counts_its_own_rows_and_misses() -> None:
    lines = PAGE.read_text().splitlines()
    rows = [
        line for line in lines if line.startswith("| ") and line != "| check | seen | expected |"
    ]
    missed = sum("**missed: " in row for row in rows)
    [told] = [match for line in lines if (match := re.match(r"(\d+) checks, (\d+) missed", line))]
    assert (int(told[1]), int(told[2])) == (len(rows), missed)

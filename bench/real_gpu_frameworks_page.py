"""`python -m bench.real_gpu_frameworks_page ROWS`: a run of bench.real_gpu_frameworks as a page.

ROWS is the file of `--output`; the options say what it was run on. Prints the page in Markdown:

    python -m bench.real_gpu_frameworks_page rows.json --date 2026-11-30 --gpu "NVIDIA H200" \\
      --driver 580.159.04 --release torch=2.11.0 --release cupy=14.2.0 \\
      > docs/frameworks-on-a-gpu.md
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.real_gpu_runs import Check


class Machine(NamedTuple):
    """What a run was made on."""

    date: str
    gpu: str
    driver: str
    releases: Sequence[str]
    """Of frameworks, as `torch=2.11.0`."""


def read(path: Path) -> list[Check]:
    """Raises ValueError or TypeError where the file is none of bench.real_gpu_frameworks."""
    return [Check(**row) for row in json.loads(path.read_text())]


def page(checks: Sequence[Check], machine: Machine) -> str:
    """Misses are listed at the top, and marked where they stand."""
    return "\n".join(_lines(list(_named(checks)), machine)) + "\n"


def _named(checks: Sequence[Check]) -> Iterator[Check]:
    """An indented check goes on about the one above, and gets its name."""
    above = ""
    for check in checks:
        if check.what.startswith(" "):
            yield check._replace(what=f"{above}: {check.what.strip()}")
        else:
            above = check.what.rpartition(": ")[0] or check.what
            yield check


def _lines(checks: Sequence[Check], machine: Machine) -> Iterator[str]:
    missed = [check for check in checks if not check.good]
    releases = ", ".join(release.replace("=", " ") for release in machine.releases)
    where = f"{machine.date}, {machine.gpu}, driver {machine.driver}, {releases}"
    yield "# Frameworks on a real GPU"
    yield ""
    yield f"`python3 -m bench.real_gpu_frameworks --output rows.json`, {where};"
    yield "this page by `bench.real_gpu_frameworks_page`."
    yield ""
    yield f"{len(checks)} checks, {len(missed)} missed{':' if missed else '.'}"
    yield ""
    for check in missed:
        yield f"- {_text(check.what)}: {_text(check.seen)} (expected {_text(check.expected)})"
    if missed:
        yield ""
    yield "| check | seen | expected |"
    yield "|---|---|---|"
    for check in checks:
        seen = _text(check.seen) if check.good else f"**missed: {_text(check.seen)}**"
        yield f"| {_text(check.what)} | {seen} | {_text(check.expected)} |"


def _text(text: str) -> str:
    """What stands in one line of a cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("*", "\\*")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.real_gpu_frameworks_page")
    parser.add_argument("rows", type=Path)
    for name in ("date", "gpu", "driver"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--release", action="append", required=True, metavar="NAME=VERSION")
    given = parser.parse_args(arguments)
    machine = Machine(given.date, given.gpu, given.driver, given.release)
    print(page(read(given.rows), machine), end="")


if __name__ == "__main__":
    main()

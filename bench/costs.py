"""Single figures with a unit and a target, as a table for people and as JSON for programs."""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PARTS_FOLDER = Path(".bench")


@dataclass(frozen=True)
class Cost:
    """One figure about a process."""

    what: str
    value: float
    unit: str
    target: float | None = None
    """The largest that is good enough."""
    least: bool = False
    """Whether the target is the smallest that is good enough."""

    @property
    def good(self) -> bool | None:
        """None where nothing was asked."""
        if self.target is None:
            return None
        return self.value >= self.target if self.least else self.value <= self.target

    def row(self) -> str:
        """The row of a Markdown table."""
        digits = 3 if self.unit.startswith("%") else 2
        value = f"{self.value:.{digits}f} {self.unit}"
        return f"| {self.what} | {value} | {target_of(self.target, self.good, least=self.least)} |"

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"good": self.good}


def target_of(target: float | None, good: bool | None, *, least: bool = False) -> str:
    """The cell that says what was asked and whether it was met."""
    return (
        ""
        if target is None
        else f"{'>=' if least else '<='} {target:g}: {'met' if good else 'MISSED'}"
    )


def table(title: str, costs: Sequence[Cost]) -> str:
    """For people."""
    lines = [f"| {title} | value | target |", "|---|---|---|"]
    return "\n".join([*lines, *(cost.row() for cost in costs)])


def write(costs: Sequence[Cost], folder: Path, part: str) -> Path:
    """Write the JSON of a part into the folder; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{part}.json"
    path.write_text(json.dumps([cost.as_json() for cost in costs], indent=2) + "\n")
    return path


def main(part: str, about: str | None, run: Callable[..., str]) -> int:
    """The command line of one part; the exit status is 0 whether or not the targets are met."""
    parser = argparse.ArgumentParser(prog=f"python -m bench.{part}", description=about)
    parser.add_argument("--quick", action="store_true", help="little of it: does it run at all?")
    parser.add_argument("--output", type=Path, default=PARTS_FOLDER, help="folder for the JSON")
    options = parser.parse_args()
    print(run(quick=options.quick, folder=options.output))
    return 0

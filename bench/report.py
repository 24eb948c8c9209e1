"""The figures as a Markdown table for people and as JSON for programs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.compare import Comparison


@dataclass(frozen=True)
class Cost:
    """One figure about the webhook's process."""

    what: str
    value: float
    unit: str
    target: float | None = None

    @property
    def good(self) -> bool | None:
        return None if self.target is None else self.value <= self.target


@dataclass(frozen=True)
class Report:
    """Everything that one run found."""

    machine: Mapping[str, str]
    comparisons: Sequence[Comparison]
    costs: Sequence[Cost]

    def as_markdown(self) -> str:
        where = "; ".join(f"{name}: {value}" for name, value in self.machine.items())
        lines = [
            where,
            "",
            "| pods | load | webhook | without (ms) | with (ms) | slowest (ms) | ratio | spread |"
            " target |",
            "|---|---|---|---|---|---|---|---|---|",
            *map(_comparison_row, self.comparisons),
            "",
            "| webhook process | value | target |",
            "|---|---|---|",
            *map(_cost_row, self.costs),
        ]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        return {
            "machine": dict(self.machine),
            "comparisons": [comparison.as_json() for comparison in self.comparisons],
            "costs": [asdict(cost) | {"good": cost.good} for cost in self.costs],
        }

    def write(self, folder: Path) -> Path:
        """Write the JSON into the folder; returns its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "admission.json"
        path.write_text(json.dumps(self.as_json(), indent=2) + "\n")
        return path


def _comparison_row(found: Comparison) -> str:
    plan = found.plan
    spread = f"{min(found.ratios):.2f} to {max(found.ratios):.2f}"
    return (
        f"| {plan.shape} | {plan.load.title} | {plan.state} | {found.without_ms:.1f} |"
        f" {found.with_ms:.1f} | {found.slowest_ms:.0f} | {found.ratio:.2f} | {spread} |"
        f" {_target(plan.target, found.good)} |"
    )


def _cost_row(cost: Cost) -> str:
    return f"| {cost.what} | {cost.value:.2f} {cost.unit} | {_target(cost.target, cost.good)} |"


def _target(target: float | None, good: bool | None) -> str:
    return "" if target is None else f"<= {target:g}: {'met' if good else 'MISSED'}"

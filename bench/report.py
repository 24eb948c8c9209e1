"""The figures as a Markdown table for people and as JSON for programs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.compare import Comparison
from bench.costs import Cost, table, target_of


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
            table("webhook process", self.costs),
        ]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        return {
            "machine": dict(self.machine),
            "comparisons": [comparison.as_json() for comparison in self.comparisons],
            "costs": [cost.as_json() for cost in self.costs],
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
        f" {target_of(plan.target, found.good)} |"
    )

"""What a scenario found: rows of one table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One thing that was looked at. `good` is None where nothing is promised about it."""

    what: str
    expected: str
    seen: str
    good: bool | None
    seconds: float | None = None
    """Where a time is what was looked at."""

    def as_raw(self) -> dict[str, Any]:
        return asdict(self)

    def as_line(self) -> str:
        verdict = {True: "pass", False: "MISS", None: "    "}[self.good]
        return f"{verdict}  {self.what}: {self.seen} (expected: {self.expected})"


def told(what: str, seen: object) -> Row:
    """A fact that nothing is promised about."""
    return Row(what, "-", str(seen), None)


def same(what: str, expected: object, seen: object) -> Row:
    return Row(what, str(expected), str(seen), expected == seen)


def within(what: str, limit: float, seconds: float | None, *, of: str = "") -> Row:
    """A time in seconds. None: it did not happen."""
    seen = "not seen" if seconds is None else f"{seconds:.2f} s"
    expected = f"<= {limit:.2f} s{f' ({of})' if of else ''}"
    return Row(what, expected, seen, seconds is not None and seconds <= limit, seconds)


def as_table(rows: dict[str, list[Row]]) -> str:
    """Markdown, scenario by scenario."""
    lines = ["| scenario | what | seen | expected | |", "|---|---|---|---|---|"]
    for scenario, found in rows.items():
        for row in found:
            verdict = {True: "pass", False: "**miss**", None: ""}[row.good]
            cells = [scenario, row.what, row.seen, row.expected, verdict]
            lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())

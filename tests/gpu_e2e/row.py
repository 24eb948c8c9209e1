"""What a scenario found: rows of one table, each of which is read alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

SIMULATED = "shown, not judged: the card is simulated"


@dataclass(frozen=True)
class Row:
    """One thing that was looked at. `good` is None where nothing is promised or judged."""

    what: str
    expected: str
    seen: str
    good: bool | None
    seconds: float | None = None
    """Where a time is what was looked at."""
    unjudged: str = ""
    """Why what is promised is not judged here."""

    def on_simulated_card(self) -> Row:
        """What such a card takes its time for says nothing; whether it came about at all does."""
        timed = self.seconds is not None and self.good is not None
        return replace(self, good=None, unjudged=SIMULATED) if timed else self

    def as_raw(self) -> dict[str, Any]:
        return asdict(self)

    def as_line(self) -> str:
        verdict = {True: "pass", False: "MISS", None: "    "}[self.good]
        why = f"; {self.unjudged}" if self.unjudged else ""
        return f"{verdict}  {self.what}: {self.seen} (expected: {self.expected}{why})"


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


def missed(rows: Iterable[Sequence[Row]]) -> int:
    return sum(row.good is False for each in rows for row in each)


def closing(rows: Iterable[Sequence[Row]], seconds: float) -> str:
    """The last line: how long it took, and how much was missed or is not judged."""
    every = list(rows)
    unjudged = [row.unjudged for each in every for row in each if row.unjudged]
    times = f", {len(unjudged)} {unjudged[0]}" if unjudged else ""
    return f"{seconds:.0f} s, {missed(every)} missed{times}"


def as_table(rows: dict[str, list[Row]]) -> str:
    """Markdown, scenario by scenario."""
    lines = ["| scenario | what | seen | expected | |", "|---|---|---|---|---|"]
    for scenario, found in rows.items():
        for row in found:
            verdict = {True: "pass", False: "**miss**", None: row.unjudged}[row.good]
            cells = [scenario, row.what, row.seen, row.expected, verdict]
            lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())

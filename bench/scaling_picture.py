"""The simulated day as an SVG: pods against demand and quota above, use of the limits below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.scaling_day import Day, Moment

WIDTH, HEIGHT, LEFT, TOP, GAP = 760, 190, 56, 34, 46
COLOURS = ("#1769aa", "#c0392b", "#e6a23c")
DEMAND_COLOUR = "#777777"
POINT_SECONDS = 300
_DAY = 24 * 3600


def picture(days: Sequence[Day], *, quota: int) -> str:
    """The whole document."""
    most = max([quota, *(moment.replicas for day in days for moment in day.moments)]) * 1.08
    pods = Panel(TOP, most, "pods")
    use = Panel(TOP + HEIGHT + GAP, 110, "% of limits held")
    parts = [*pods.frame(step=100), *use.frame(step=20)]
    parts.append(pods.level(quota, "quota"))
    parts.append(use.level(80, "target"))
    first = days[0].moments
    parts.append(pods.line(first, lambda moment: moment.demand_pods, DEMAND_COLOUR))
    for day, colour in reversed(list(zip(days, COLOURS, strict=False))):
        parts.append(pods.line(day.moments, lambda moment: moment.replicas, colour))
        parts.append(use.line(day.moments, lambda moment: moment.percent, colour))
    parts += _legend([("demand, in full pods", DEMAND_COLOUR), *_named(days)])
    height = TOP + 2 * HEIGHT + GAP + 34
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {height}"'
        f' font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%"'
        f' fill="white"/>\n{body}\n</svg>\n'
    )


class Panel:
    """One pair of axes; `most` is at its top."""

    def __init__(self, top: int, most: float, title: str) -> None:
        self._top = top
        self._most = most
        self._title = title

    def frame(self, *, step: int) -> Iterable[str]:
        yield f'<text x="{LEFT}" y="{self._top - 6}">{self._title}</text>'
        for value in range(0, int(self._most) + 1, step):
            y = self._y(value)
            yield (
                f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="#e5e5e5"/>'
                f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value}</text>'
            )
        for hour in range(0, 25, 3):
            x = LEFT + WIDTH * hour / 24
            y = self._top + HEIGHT + 14
            yield f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{hour}:00</text>'

    def level(self, value: float, title: str) -> str:
        y = self._y(value)
        return (
            f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="black" stroke-dasharray="5 4"/>'
            f'<text x="{LEFT + 4}" y="{y - 4:.1f}">{title}</text>'
        )

    def line(self, moments: Sequence[Moment], of: Callable[[Moment], float], colour: str) -> str:
        points = " ".join(
            f"{LEFT + WIDTH * moment.seconds / _DAY:.1f},{self._y(of(moment)):.1f}"
            for moment in moments
            if moment.seconds % POINT_SECONDS == 0
        )
        return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'

    def _y(self, value: float) -> float:
        return self._top + HEIGHT * (1 - value / self._most)


def _named(days: Sequence[Day]) -> list[tuple[str, str]]:
    return [(day.name, colour) for day, colour in zip(days, COLOURS, strict=False)]


def _legend(entries: Sequence[tuple[str, str]]) -> Iterable[str]:
    x = LEFT
    for text, colour in entries:
        yield (
            f'<rect x="{x}" y="4" width="12" height="8" fill="{colour}"/>'
            f'<text x="{x + 16}" y="12">{text}</text>'
        )
        x += 30 + 11 * len(text) // 2

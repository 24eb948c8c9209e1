"""Runs scenarios, some of them beside each other; the failure of one ends no other."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from devcluster.progress import say
from gpu_e2e.place import Place
from gpu_e2e.row import Row, told
from gpu_e2e.scenarios.limits import limits
from gpu_e2e.scenarios.mps import mps
from gpu_e2e.scenarios.overuse import overuse
from gpu_e2e.scenarios.queue import queue
from gpu_e2e.scenarios.scaling import scaling
from gpu_e2e.scenarios.speed import speed
from gpu_e2e.stage import Stage

Scenario = Callable[[Stage], Iterator[Row]]
ROUNDS: tuple[tuple[Scenario, ...], ...] = (
    (limits, queue),
    (overuse, scaling),
    (speed,),
    (mps,),
)
"""Those of one round run at the same time; what a time is measured in stands alone."""


def run(place: Place, wanted: Sequence[str] = ()) -> dict[str, list[Row]]:
    """The rows of each scenario, in order."""
    found: dict[str, list[Row]] = {"machine": list(place.facts)}
    for together in ROUNDS:
        chosen = [one for one in together if not wanted or one.__name__ in wanted]
        with ThreadPoolExecutor(max_workers=max(len(chosen), 1)) as pool:
            rows = pool.map(lambda scenario: _rows(scenario, place), chosen)
            found |= {one.__name__: each for one, each in zip(chosen, rows, strict=True)}
    return found


def _rows(scenario: Scenario, place: Place) -> list[Row]:
    started = time.monotonic()
    rows: list[Row] = []
    try:
        with Stage(place) as stage:
            for row in scenario(stage):
                say(f"{scenario.__name__}: {row.as_line()}")
                rows.append(row)
    except Exception as error:
        traceback.print_exc()
        rows.append(Row("the scenario ended early", "it ends", f"{error}"[:1500], False))
    rows.append(told("seconds", f"{time.monotonic() - started:.0f}"))
    return rows


def missed(rows: Iterable[Sequence[Row]]) -> int:
    return sum(row.good is False for each in rows for row in each)

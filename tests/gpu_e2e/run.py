"""Runs scenarios, some of them beside each other; the failure of one ends no other."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from devcluster.progress import say
from gpu_e2e.operator_pods import await_answers, containers, started_again
from gpu_e2e.place import Place
from gpu_e2e.refusals import answered
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


def chosen(wanted: Sequence[str] = ()) -> list[list[Scenario]]:
    """The rounds with the scenarios of these names; with all of them where none is named."""
    return [
        [one for one in together if not wanted or one.__name__ in wanted] for together in ROUNDS
    ]


def run(place: Place, wanted: Sequence[str] = ()) -> dict[str, list[Row]]:
    """The rows of each scenario, in order."""
    found: dict[str, list[Row]] = {"machine": list(place.facts)}
    for together in chosen(wanted):
        names = [one.__name__ for one in together]
        with ThreadPoolExecutor(max_workers=max(len(names), 1)) as pool:
            rows = pool.map(lambda scenario, names=names: _rows(scenario, place, names), together)
            found |= dict(zip(names, rows, strict=True))
    return found


def _rows(scenario: Scenario, place: Place, together: Sequence[str]) -> list[Row]:
    started = time.monotonic()
    name, cluster = scenario.__name__, place.node.cluster
    say(f"scenario {name} starts")
    rows: list[Row] = []
    try:
        await_answers(cluster)
        before = answered(lambda: containers(cluster))
        try:
            with Stage(place) as stage:
                for row in scenario(stage):
                    rows.append(row.on_simulated_card() if place.simulated else row)
                    say(f"{name}: {rows[-1].as_line()}")
        finally:
            now = answered(lambda: containers(cluster))
            if again := started_again(before, now):
                rows.append(told("containers of the operator that were started again", again))
                say(f"{name}: {rows[-1].as_line()}")
    except Exception as error:
        traceback.print_exc()
        rows.append(Row("the scenario ended early", "it ends", f"{error}"[:1500], False))
        say(f"{name}: {rows[-1].as_line()}")
    rows.append(_lasted(time.monotonic() - started, [one for one in together if one != name]))
    say(f"scenario {name} has ended after {rows[-1].seen} s")
    return rows


def _lasted(seconds: float, others: Sequence[str]) -> Row:
    beside = f", at the same time as {', '.join(others)}" if others else ""
    return told(f"seconds{beside}", f"{seconds:.0f}")

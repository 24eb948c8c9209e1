"""A training step with everything on, against the same pod without the operator, in turns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from statistics import median
from subprocess import Popen

from gpu_e2e.refusals import NotSeenError, answered
from gpu_e2e.row import Row
from gpu_e2e.stage import Actor, Stage

PAIRS = 45
"""Single ratios lie up to 20 % apart on an H200; the median of so many, some 2 %."""
WARM_STEPS, STEPS = 1500, 250
"""The shim's thread looks often in the first two seconds, which are not what is asked about."""
TRAIN = f"""
import card, json, sys
run = card.trainer()
run({WARM_STEPS})
print(json.dumps(["warm"]), flush=True)
for _ in sys.stdin:
    print(json.dumps([run({STEPS})]), flush=True)
"""
STAY = "print(json.dumps({'up': True}), flush=True)\ncard.stay()"


def speed(stage: Stage) -> Iterator[Row]:
    with_it = stage.team("with", limits={"default": "16Gi"})
    without = stage.team("without", labels={"gpumemory.dev/ignore": "true"})
    for team in (with_it, without):
        team.run("train", STAY)
    for team in (with_it, without):
        team.says("train")
    assert "gpumem-shim" not in json.dumps(answered(lambda: without.pod("train"))), "left alone"
    programs = {True: _train(with_it), False: _train(without)}
    try:
        times = _in_turns(programs)
    finally:
        for program in programs.values():
            program.communicate("", timeout=30)
    ratios = [one / other for one, other in zip(times[True], times[False], strict=True)]
    seen = (
        f"{median(ratios):.3f} ({1000 * median(times[True]):.3f} and"
        f" {1000 * median(times[False]):.3f} ms, ratios {min(ratios):.3f} to {max(ratios):.3f})"
    )
    what = "a training step with shim, sidecar and agent, against without the operator"
    yield Row(what, "<= 1.03", seen, median(ratios) <= 1.03, median(times[True]))


def _train(team: Actor) -> Popen[str]:
    where = ["exec", "-i", "train", "-n", team.name, "-c", "main", "--"]
    command = [team.place.workload.python, "-c", TRAIN]
    program = team.team.cluster.start_kubectl(*where, *command)
    _answer(program)
    return program


def _in_turns(programs: dict[bool, Popen[str]]) -> dict[bool, list[float]]:
    times: dict[bool, list[float]] = {True: [], False: []}
    for pair in range(PAIRS):
        for which in (True, False) if pair % 2 else (False, True):
            program = programs[which]
            assert program.stdin is not None
            program.stdin.write("\n")
            program.stdin.flush()
            times[which].append(float(_answer(program)))
    return times


def _answer(program: Popen[str]) -> str:
    """The next line of JSON, whatever frameworks print beside it."""
    assert program.stdout is not None
    said = []
    for line in program.stdout:
        said.append(line)
        if line.startswith("["):
            return str(json.loads(line)[0])
    raise NotSeenError(f"the training ended: {''.join(said)[-1500:]}")

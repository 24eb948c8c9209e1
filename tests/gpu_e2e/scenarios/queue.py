"""A third pod of a tenant waits for room, and starts when the first one ends."""

from __future__ import annotations

import time
from collections.abc import Iterator

from endtoend.quota import GATE
from gpu_e2e.row import Row, same, within
from gpu_e2e.stage import Stage, until

HOLD = "card.raw(1024)\nprint(json.dumps({'holds': time.time()}), flush=True)\ncard.stay()"


def queue(stage: Stage) -> Iterator[Row]:
    tenant = stage.tenant("queue", "16Gi")
    team = stage.team("queue", labels={"team": tenant}, limits={"default": "8Gi"})
    for name in ("first", "second"):
        team.run(name, HOLD)
    for name in ("first", "second"):
        team.says(name, seconds=120)
    team.run("third", HOLD)
    time.sleep(3)
    gates = [gate["name"] for gate in team.pod("third")["spec"].get("schedulingGates", [])]
    yield same("16 GiB, two pods of 8: the third waits at", [GATE], gates)
    queued = [one["name"] for one in team.team.get("gmt", tenant)["status"].get("queue", [])]
    yield same("  and stands in the tenant's queue", ["third"], queued)
    team.execute("first", stage.place.workload.python, "-S", "-c", "open('/tmp/end', 'w')")
    started = until(lambda: _finished(team.pod("first")), "the first one has ended")
    until(lambda: "schedulingGates" not in team.pod("third")["spec"], "the gate is opened")
    yield within("  the first ends: the gate is open after", 2.0, time.time() - started)
    holds = team.says("third", seconds=120)["holds"]
    yield within("  the third holds memory after", 30.0, holds - started)


def _finished(pod: dict[str, object]) -> float:
    status = pod["status"]
    assert isinstance(status, dict)
    return time.time() if status.get("phase") == "Succeeded" else 0.0

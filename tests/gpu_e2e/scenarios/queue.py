"""A third pod of a tenant waits for room, and starts when the first one ends."""

from __future__ import annotations

import time
from collections.abc import Iterator

from endtoend.quota import GATE
from gpu_e2e.refusals import answered, settled, until
from gpu_e2e.row import Row, same, within
from gpu_e2e.stage import Actor, Stage

HOLD = "card.raw(1024)\nprint(json.dumps({'holds': time.time()}), flush=True)\ncard.stay()"


def queue(stage: Stage) -> Iterator[Row]:
    tenant = stage.tenant("queue", "16Gi")
    team = stage.team("queue", labels={"team": tenant}, limits={"default": "8Gi"})
    for name in ("first", "second"):
        team.run(name, HOLD)
    for name in ("first", "second"):
        team.says(name)
    team.run("third", HOLD)
    time.sleep(3)
    gates = answered(lambda: team.pod("third"))["spec"].get("schedulingGates", [])
    names = ", ".join(gate["name"] for gate in gates)
    yield same("third pod of 8 GiB in a quota of 16 GiB: gate that it waits at", GATE, names)
    yield same("the tenant's queue", "third", settled(lambda: _queued(team, tenant), bool))
    team.execute("first", stage.place.workload.python, "-S", "-c", "open('/tmp/end', 'w')")
    started = until(lambda: _finished(team.pod("first")), "the first one has ended")
    until(lambda: "schedulingGates" not in team.pod("third")["spec"], "the gate is opened")
    waited = time.time() - started
    yield within("first pod has ended: the third one's gate is open after", 2.0, waited)
    holds = team.says("third")["holds"]
    what = "first pod has ended: the third one holds memory after"
    yield within(what, 30.0, holds - started)


def _queued(team: Actor, tenant: str) -> str:
    status = team.team.get("gmt", tenant).get("status", {})
    return ", ".join(one["name"] for one in status.get("queue", []))


def _finished(pod: dict[str, object]) -> float:
    status = pod["status"]
    assert isinstance(status, dict)
    return time.time() if status.get("phase") == "Succeeded" else 0.0

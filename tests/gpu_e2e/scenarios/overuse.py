"""Programs over their limit, by CUDA itself where no framework's cap holds, and what is done."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from gpu_e2e.place import INTERVAL_SECONDS
from gpu_e2e.row import Row, same, told, within
from gpu_e2e.stage import GIB, MIB, Actor, Stage, until

GRACE_SECONDS = 5
NEAR_SECONDS = 25
"""Pods that are not over their limit are looked at every 10 s."""
FREED_SECONDS = 1.0
ANSWERED_SECONDS = 1.0
BEGUN_SECONDS = 1.0
"""A grace period begins at a whole second."""
NEAR = f"""
card.raw(7000)
print(json.dumps({{"near": True}}), flush=True)
time.sleep({NEAR_SECONDS})
card.raw(5000)
card.stay()
"""
OVER = "card.raw(12000)\nprint(json.dumps({'over': True}), flush=True)\ncard.stay()"
CACHES = """
card.take(4500)
card.drop()
card.raw(5000)
print(json.dumps({"over": True}), flush=True)
card.stay()
"""
COMPUTES = """
seen = {card.checksum()}
print(json.dumps({"first": list(seen)}), flush=True)
rounds = 0
import os
while not os.path.exists("/tmp/end"):
    seen.add(card.checksum())
    rounds += 1
print(json.dumps({"rounds": rounds, "results": list(seen)}), flush=True)
"""


def policy(*actions: str, **fields: Any) -> Mapping[str, Any]:
    enforcement = {
        "mode": "Enforce",
        "gracePeriodSeconds": GRACE_SECONDS,
        "actions": list(actions),
    }
    return {"limits": {"default": "8Gi"}, "enforcement": enforcement, **fields}


def overuse(stage: Stage) -> Iterator[Row]:
    quick = {"intervalSeconds": INTERVAL_SECONDS}
    evicts = stage.team("evicts", **policy("Reclaim", "Evict", monitoring=quick))
    kills = stage.team("kills", **policy("Kill", monitoring={"mode": "NodeAgent"}))
    neighbour = evicts.run("neighbour", COMPUTES)
    offender = evicts.run("offender", NEAR)
    hoarder = evicts.run("hoarder", CACHES)
    for name in ("neighbour", "offender", "hoarder"):
        evicts.says(name, seconds=120)
    yield from _warned(evicts)
    yield from _given_back(evicts, hoarder)
    yield from _evicted(stage, evicts, offender)
    killed = kills.run("offender", OVER)
    kills.says("offender", seconds=120)
    yield from _killed(kills, killed)
    yield from _unchanged(evicts, neighbour)


def _warned(actor: Actor) -> Iterator[Row]:
    for reason in ("NearLimit", "OverLimit"):
        until(lambda reason=reason: reason in actor.events("offender"), reason)  # type: ignore[misc]
        yield told(f"a program that takes more and more: event {reason}", "seen")


def _given_back(actor: Actor, uid: str) -> Iterator[Row]:
    """Cached memory of torch, beside memory that no framework knows of."""
    until(lambda: ("Reclaim", "Done") in actor.actions("hoarder"), "memory is given back")
    held = actor.look().of_pod(uid)
    seen = f"{held.peak / MIB:.0f} -> {held.now / MIB:.0f} MiB"
    what = "torch with a full cache and CUDA memory beside it: reclaimed"
    yield Row(what, "within 8192 MiB", seen, held.now <= 8 * GIB)


def _evicted(stage: Stage, actor: Actor, uid: str) -> Iterator[Row]:
    after = until(lambda: _freed(actor, uid), "the eviction", seconds=90)
    until(lambda: ("Evict", "Done") in actor.actions("offender"), "the eviction is told")
    yield same(
        "a program without a framework: what was done",
        [("Reclaim", "Unsupported"), ("Evict", "Done")],
        actor.actions("offender"),
    )
    limit = INTERVAL_SECONDS + 1.0 + BEGUN_SECONDS + ANSWERED_SECONDS + 1.0 + FREED_SECONDS
    of = "interval, 1 s, the begun second, 1 s for Reclaim's answer, the pod's 1 s, 1 s to be free"
    yield within("  its memory is free after the grace period", limit, after, of=of)
    until(lambda: actor.gone("offender"), "the pod is gone")
    yield same("  NVML lists of it", {}, stage.place.watch.look().processes_of(uid))
    yield same("  the other one of the policy stays", False, actor.gone("hoarder"))


def _freed(actor: Actor, uid: str) -> float | None:
    """Seconds from the end of the grace period until a pod held nothing."""
    held = actor.look().of_pod(uid)
    return None if held.ended is None else held.ended - held.grew - GRACE_SECONDS


def _killed(actor: Actor, uid: str) -> Iterator[Row]:
    after = until(lambda: _freed(actor, uid), "the kill", seconds=90)
    limit = INTERVAL_SECONDS + 1.0 + BEGUN_SECONDS
    of = "the interval, 1 s and the begun second"
    yield within("Kill: free after the grace period", limit, after, of=of)
    until(lambda: actor.actions("offender"), "the kill is told")
    yield same("  what was done", [("Kill", "Done")], actor.actions("offender"))
    code = until(lambda: _exit_code(actor), "the kubelet tells of the end")
    yield same("  exit code of its program", 137, code)


def _exit_code(actor: Actor) -> int | None:
    state = actor.pod("offender")["status"]["containerStatuses"][0]["state"]
    code: int | None = state.get("terminated", {}).get("exitCode")
    return code


def _unchanged(actor: Actor, uid: str) -> Iterator[Row]:
    held = actor.look().of_pod(uid)
    time.sleep(1)
    actor.execute("neighbour", actor.place.workload.python, "-S", "-c", "open('/tmp/end', 'w')")
    last = until(lambda: _results(actor), "the neighbour ends")
    results = last["results"]
    seen = f"{len(results)} result in {last['rounds']} rounds, {held.now // MIB} MiB held"
    yield Row("a neighbour meanwhile", "one result", seen, len(results) == 1)


def _results(actor: Actor) -> dict[str, Any] | None:
    found: list[dict[str, Any]] = [one for one in actor.said("neighbour") if "results" in one]
    return found[0] if found else None

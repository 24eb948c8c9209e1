"""Programs over their limit, by CUDA itself where no framework's cap holds, and what is done."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from gpu_e2e.place import INTERVAL_SECONDS
from gpu_e2e.refusals import answered, settled, until
from gpu_e2e.row import Row, same, told, within
from gpu_e2e.stage import GIB, MIB, Actor, Stage

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
        evicts.says(name)
    yield from _warned(evicts)
    yield from _given_back(evicts, hoarder)
    yield from _evicted(stage, evicts, offender)
    killed = kills.run("offender", OVER)
    kills.says("offender")
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
    after = until(lambda: _freed(actor, uid), "the eviction")
    wanted = "Reclaim: Unsupported, Evict: Done"
    what = "a program without a framework over its limit: what was done"
    yield same(what, wanted, _done(actor, wanted))
    limit = INTERVAL_SECONDS + 1.0 + BEGUN_SECONDS + ANSWERED_SECONDS + 1.0 + FREED_SECONDS
    of = "interval, 1 s, the begun second, 1 s for Reclaim's answer, the pod's 1 s, 1 s to be free"
    what = "Evict: the offender's memory is free after the grace period"
    yield within(what, limit, after, of=of)
    until(lambda: actor.gone("offender"), "the pod is gone")
    left = stage.place.watch.look().processes_of(uid)
    listed = ", ".join(f"{pid}: {one.now // MIB} MiB" for pid, one in left.items())
    yield same("Evict: the offender's processes that NVML still lists", "none", listed or "none")
    kept = "gone" if answered(lambda: actor.gone("hoarder")) else "is there"
    yield same("Evict: the pod of the same policy that had given back", "is there", kept)


def _done(actor: Actor, wanted: str) -> str:
    """What was done about the offender, once it is what is wanted."""

    def look() -> str:
        return ", ".join(": ".join(one) for one in actor.actions("offender"))

    return settled(look, lambda seen: seen == wanted)


def _freed(actor: Actor, uid: str) -> float | None:
    """Seconds from the end of the grace period until a pod held nothing."""
    held = actor.look().of_pod(uid)
    return None if held.ended is None else held.ended - held.grew - GRACE_SECONDS


def _killed(actor: Actor, uid: str) -> Iterator[Row]:
    after = until(lambda: _freed(actor, uid), "the kill")
    limit = INTERVAL_SECONDS + 1.0 + BEGUN_SECONDS
    of = "the interval, 1 s and the begun second"
    what = "Kill: the offender's memory is free after the grace period"
    yield within(what, limit, after, of=of)
    yield same("Kill: what was done", "Kill: Done", _done(actor, "Kill: Done"))
    code = until(lambda: _exit_code(actor), "the kubelet tells of the end")
    yield same("Kill: exit code of the offender's program", 137, code)


def _exit_code(actor: Actor) -> int | None:
    told_of = actor.pod("offender")["status"].get("containerStatuses", [])
    ends = [one["state"].get("terminated", {}).get("exitCode") for one in told_of]
    return next((code for code in ends if code is not None), None)


def _unchanged(actor: Actor, uid: str) -> Iterator[Row]:
    held = actor.look().of_pod(uid)
    time.sleep(1)
    actor.execute("neighbour", actor.place.workload.python, "-S", "-c", "open('/tmp/end', 'w')")
    last = until(lambda: _results(actor), "the neighbour ends")
    results = last["results"]
    seen = f"{len(results)} result in {last['rounds']} rounds, {held.now // MIB} MiB held"
    what = "a neighbour that computes the same meanwhile"
    yield Row(what, "one result", seen, len(results) == 1)


def _results(actor: Actor) -> dict[str, Any] | None:
    found: list[dict[str, Any]] = [one for one in actor.said("neighbour") if "results" in one]
    return found[0] if found else None

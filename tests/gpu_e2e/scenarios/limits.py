"""Two tenants on one card, each program held at its limit; who holds what is told."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

from gpu_e2e.place import INTERVAL_SECONDS
from gpu_e2e.refusals import answered, settled, until
from gpu_e2e.row import Row, same, told, within
from gpu_e2e.stage import GIB, MIB, Actor, Stage, tenants_usage
from node.workload import agents_sample

LIMIT = 8 * GIB
FILL = "print(json.dumps({{'taken': card.take_all('{framework}')}}), flush=True)\ncard.stay()"
ESCAPE = """
import sys
sys.path[:0] = {paths!r}
import card
card.raw(512)
print("holding", flush=True)
sys.stdin.read()
"""
Pods = list[tuple[str, Actor, str]]
"""Of each: its name, which is its framework's, its namespace and its uid."""


def limits(stage: Stage) -> Iterator[Row]:
    spec = {"limits": {"default": "8Gi"}}
    red = stage.tenant("red", "64Gi")
    blue = stage.tenant("blue", "64Gi")
    one = stage.team("red", labels={"team": red}, **spec)
    other = stage.team("blue", labels={"team": blue}, monitoring={"mode": "NodeAgent"}, **spec)
    pods: Pods = []
    for number, name in enumerate(stage.place.workload.frameworks):
        actor = (other, one)[number == 0]
        pods.append((name, actor, actor.run(name, FILL.format(framework=name))))
    for name, actor, _ in pods:
        actor.says(name)
    time.sleep(3)
    for name, actor, uid in pods:
        yield from _held(name, actor, uid)
    yield from _reports(stage, pods)
    yield from _of_tenants(stage, {red: [one], blue: [other]}, pods)
    if pods:
        yield from _sidecar(*pods[0][:2])
        yield from _escape(*pods[0])


def _held(name: str, actor: Actor, uid: str) -> Iterator[Row]:
    held = actor.look().of_pod(uid)
    seen = f"{held.peak / MIB:.0f} of {LIMIT // MIB} MiB"
    yield Row(f"{name}: NVML peak", "never over", seen, 0 < held.peak <= LIMIT)
    share = 100 * held.peak / LIMIT
    yield Row(f"{name}: usable", ">= 90 %", f"{share:.1f} %", share >= 90)
    yield same(f"{name}: limit held by", "Framework", _settled_enforcer(actor, name, "Framework"))


def _settled_enforcer(actor: Actor, name: str, wanted: str) -> str:
    return settled(lambda: actor.enforcer(name), lambda seen: seen == wanted)


def _reports(stage: Stage, pods: Pods) -> Iterator[Row]:
    """What the agent measures now, beside what the driver says now."""
    sample = answered(lambda: agents_sample(stage.place.node))
    picture = stage.place.watch.look()
    for name, actor, uid in pods:
        by_driver = {pid: one.now for pid, one in picture.processes_of(uid).items()}
        by_agent = [one for one in sample["processes"] if one["podUid"] == uid]
        amounts = {one["pid"]: one["bytes"] for one in by_agent}
        near = amounts.keys() == by_driver.keys() and all(
            abs((amounts[pid] or 0) - by_driver[pid]) <= MIB for pid in by_driver
        )
        seen = f"{_mib(amounts)}, driver: {_mib(by_driver)}"
        what = f"{name}: what the agent says that each process holds"
        yield Row(what, "as the driver, within 1 MiB", seen, near)
        owners = ", ".join(sorted({one["container"] for one in by_agent}))
        yield same(f"{name}: container that the agent finds them in", "main", owners)
        total = sum(by_driver.values())
        what = f"{name}: what the operator says that the pod holds"
        yield _amount(what, total, lambda: actor.usage(name), of=1)  # noqa: B023


def _amount(what: str, wanted: int, look: Callable[[], dict[str, Any]], *, of: int) -> Row:
    """What the operator says that is used, within 1 MiB for each of so many pods."""

    def near(used: int) -> bool:
        return abs(used - wanted) <= MIB * of

    used = settled(lambda: int(look().get("usedBytes") or 0), near)
    return Row(what, f"{wanted // MIB} MiB", f"{used // MIB} MiB", near(used))


def _of_tenants(stage: Stage, tenants: dict[str, list[Actor]], pods: Pods) -> Iterator[Row]:
    picture = stage.place.watch.look()
    for tenant, actors in tenants.items():
        own = [uid for _, actor, uid in pods if actor in actors]
        total = sum(picture.of_pod(uid).now for uid in own)
        what = f"tenant {tenant.partition('-')[0]}: what the operator says that its pods hold"
        yield _amount(what, total, lambda: tenants_usage(stage.place, tenant), of=len(own))  # noqa: B023


def _sidecar(name: str, actor: Actor) -> Iterator[Row]:
    """Of the pod that has one."""
    ask = ("python", "-m", "gpumem_sidecar", "--once")
    sample = json.loads(actor.execute(name, *ask, container="gpumem-sidecar"))
    yield told(f"{name}: what its sidecar sees of NVML", sample["unknown"] or "everything")
    seen = [one.get("bytes") for one in sample["processes"]]
    claims = [one["shim"]["frameworks"][0]["name"] for one in sample["processes"] if one["shim"]]
    held = ", ".join(f"{amount} bytes" for amount in seen)
    yield told(f"{name}: its sidecar reports", f"{held}, shims of {', '.join(claims)}")


def _escape(name: str, actor: Actor, uid: str) -> Iterator[Row]:
    """A process that knows nothing of the container's variables."""
    paths = [target for target in actor.place.workload.mounts if target.startswith(("/e2e", "/li"))]
    program = ESCAPE.format(paths=paths)
    where = ["exec", "-i", name, "-n", actor.name, "-c", "main", "--"]
    before = set(actor.look().processes_of(uid))
    command = [actor.place.workload.python, "-S", "-c", program]
    process = actor.team.cluster.start_kubectl(*where, *command)
    try:
        new = until(lambda: set(actor.look().processes_of(uid)) - before, "the escape is listed")
        since = min(actor.look().processes[pid].first for pid in new)
        told_of = settled(lambda: actor.enforcer(name), lambda seen: seen.startswith("None"))
        seconds = time.time() - since
        what = f"{name}, when a process has gone round its cap: limit held by"
        yield Row(what, "None", told_of, told_of.startswith("None: "))
        what = f"{name}: a process that goes round its cap is told of after"
        limit = INTERVAL_SECONDS + 1.0
        yield within(what, limit, seconds, of="the agent's interval, and 1 s to tell")
    finally:
        _end(process)
    what = f"{name}, when the process that went round its cap has ended: limit held by"
    yield same(what, "Framework", _settled_enforcer(actor, name, "Framework"))


def _end(process: subprocess.Popen[str]) -> None:
    try:
        process.communicate("", timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def _mib(amounts: dict[int, Any]) -> str:
    shown = [f"{(one or 0) / MIB:.1f} MiB" for one in amounts.values()]
    return " + ".join(shown) or "nothing"

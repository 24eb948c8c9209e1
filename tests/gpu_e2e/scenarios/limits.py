"""Two tenants on one card, each program held at its limit; who holds what is told."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from typing import Any

from gpu_e2e.place import INTERVAL_SECONDS
from gpu_e2e.row import Row, same, told, within
from gpu_e2e.stage import GIB, MIB, Actor, Stage, tenants_usage, until
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
        actor.says(name, seconds=120)
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
    until(lambda: actor.enforcer(name) == "Framework", f"{name} is held by Framework")
    yield same(f"{name}: limit held by", "Framework", actor.enforcer(name))


def _reports(stage: Stage, pods: Pods) -> Iterator[Row]:
    """What the agent measures now, beside what the driver says now."""
    sample = agents_sample(stage.place.node)
    picture = stage.place.watch.look()
    for name, actor, uid in pods:
        by_driver = {pid: one.now for pid, one in picture.processes_of(uid).items()}
        by_agent = [one for one in sample["processes"] if one["podUid"] == uid]
        amounts = {one["pid"]: one["bytes"] for one in by_agent}
        near = amounts.keys() == by_driver.keys() and all(
            abs((amounts[pid] or 0) - by_driver[pid]) <= MIB for pid in by_driver
        )
        seen = f"{_mib(amounts)}, driver: {_mib(by_driver)}"
        yield Row(f"{name}: agent reports", "each process, within 1 MiB", seen, near)
        owners = {one["container"] for one in by_agent}
        yield same(f"{name}: in container", {"main"}, owners)
        usage = actor.usage(name)
        total = sum(by_driver.values())
        yield Row(
            f"{name}: the operator says of {actor.name}/{name}",
            f"{total // MIB} MiB",
            f"{(usage.get('usedBytes') or 0) // MIB} MiB",
            abs((usage.get("usedBytes") or 0) - total) <= MIB,
        )


def _of_tenants(stage: Stage, tenants: dict[str, list[Actor]], pods: Pods) -> Iterator[Row]:
    picture = stage.place.watch.look()
    for tenant, actors in tenants.items():
        own = [uid for _, actor, uid in pods if actor in actors]
        total = sum(picture.of_pod(uid).now for uid in own)
        used = tenants_usage(stage.place, tenant).get("usedBytes") or 0
        seen = f"{used // MIB} MiB"
        what = f"tenant {tenant.partition('-')[0]}: used"
        yield Row(what, f"{total // MIB} MiB", seen, abs(used - total) <= MIB * len(own))


def _sidecar(name: str, actor: Actor) -> Iterator[Row]:
    """Of the pod that has one."""
    ask = ("python", "-m", "gpumem_sidecar", "--once")
    sample = json.loads(actor.execute(name, *ask, container="gpumem-sidecar"))
    yield told(f"{name}: what its sidecar sees of NVML", sample["unknown"] or "everything")
    seen = [one.get("bytes") for one in sample["processes"]]
    claims = [one["shim"]["frameworks"][0]["name"] for one in sample["processes"] if one["shim"]]
    yield told(f"{name}: its sidecar reports", f"{seen}, shims of {claims}")


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
        until(lambda: actor.enforcer(name).startswith("None"), "the escape is reported")
        seconds = time.time() - since
        told_of = actor.enforcer(name)
        what = "a process beside it, started without the container's variables: limit held by"
        yield Row(what, "None", told_of, told_of.startswith("None: "))
        limit = INTERVAL_SECONDS + 1.0
        yield within("  told after", limit, seconds, of="the agent's interval, and 1 s to tell")
    finally:
        _end(process)
    until(lambda: actor.enforcer(name) == "Framework", "the pod is held again")
    yield same("  when it has ended: limit held by", "Framework", actor.enforcer(name))


def _end(process: subprocess.Popen[str]) -> None:
    try:
        process.communicate("", timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def _mib(amounts: dict[int, Any]) -> str:
    shown = [f"{(one or 0) / MIB:.1f} MiB" for one in amounts.values()]
    return " + ".join(shown) or "nothing"

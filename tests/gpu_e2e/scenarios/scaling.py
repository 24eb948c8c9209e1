"""A Deployment grows when its pods use more than a share of their limits, to the tenant's room."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from gpu_e2e.refusals import settled, until
from gpu_e2e.row import Row, same, told
from gpu_e2e.stage import Actor, Stage

FILL = "print(json.dumps({'taken': card.take_all('torch')}), flush=True)\ncard.stay()"
ROOM = 3
"""Pods that the tenant can pay for."""
FULL_PERCENT = 80
"""More than any share that two full pods of three have."""


def scaling(stage: Stage) -> Iterator[Row]:
    tenant = stage.tenant("scaling", f"{4 * ROOM}Gi")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "serve"}
    entry = {"targetRef": target, "minReplicas": 1, "maxReplicas": 6, "targetPercent": 50}
    team = stage.team(
        "scaling", labels={"team": tenant}, limits={"default": "4Gi"}, scaling=[entry]
    )
    started = time.monotonic()
    team.store(_deployment(team))
    until(lambda: _replicas(team) == ROOM, f"{ROOM} replicas")
    what = "a Deployment whose pods fill their limits, target 50 %: from 1 to 3 replicas after"
    yield told(what, _s(started))
    seen: dict[str, Any] = settled(lambda: _told(team), _told_of_full_pods)
    what = "the Deployment, when all its pods are full: use of their limits in percent"
    used = seen.get("currentPercent", "unknown")
    yield Row(what, f">= {FULL_PERCENT}", f"{used}", _full(seen))
    yield same("the Deployment: held back by", "QuotaReached", seen.get("reason"))
    yield same("the Deployment: replicas", ROOM, settled(lambda: _replicas(team), bool))
    yield told("the Deployment, in the operator's words", seen.get("message", ""))


def _told_of_full_pods(entry: dict[str, Any]) -> bool:
    return _full(entry) and entry.get("reason") == "QuotaReached"


def _full(entry: dict[str, Any]) -> bool:
    """Not where it is unknown."""
    return bool(entry.get("currentPercent", 0) >= FULL_PERCENT)


def _s(started: float) -> str:
    return f"{time.monotonic() - started:.0f} s"


def _deployment(team: Actor) -> dict[str, Any]:
    pod = team.spec("serve", FILL)
    labels = {"app": "serve"}
    spec = {**pod["spec"], "restartPolicy": "Always"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "serve"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def _replicas(team: Actor) -> int:
    found: int = team.team.get("deployment", "serve")["spec"]["replicas"]
    return found


def _told(team: Actor) -> dict[str, Any]:
    entries = team.team.get("gmp", "policy").get("status", {}).get("scaling", [])
    found: dict[str, Any] = entries[0] if entries else {}
    return found

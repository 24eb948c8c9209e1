"""A Deployment grows when its pods use more than a share of their limits, to the tenant's room."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from gpu_e2e.row import Row, same, told
from gpu_e2e.stage import Actor, Stage, until

FILL = "print(json.dumps({'taken': card.take_all('torch')}), flush=True)\ncard.stay()"
ROOM = 3
"""Pods that the tenant can pay for."""


def scaling(stage: Stage) -> Iterator[Row]:
    tenant = stage.tenant("scaling", f"{4 * ROOM}Gi")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "serve"}
    entry = {"targetRef": target, "minReplicas": 1, "maxReplicas": 6, "targetPercent": 50}
    team = stage.team(
        "scaling", labels={"team": tenant}, limits={"default": "4Gi"}, scaling=[entry]
    )
    started = time.monotonic()
    assert "created" in team.team.create(_deployment(team))
    until(lambda: _replicas(team) == ROOM, f"{ROOM} replicas", seconds=120)
    yield told("a Deployment at 90 % of its limit, target 50 %: 1 -> 3 replicas after", _s(started))
    until(lambda: _told(team).get("reason") == "QuotaReached", "the quota is named", seconds=60)
    yield same("  held by", "QuotaReached", _told(team)["reason"])
    yield same("  replicas", ROOM, _replicas(team))
    yield told("  in the operator's words", _told(team).get("message", ""))


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
    return entries[0] if entries else {}

"""The operator's own pods: whether it answers, and which containers were started again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from devcluster.commands import Commands
from devcluster.installation import NAMESPACE
from gpu_e2e.refusals import until

READY_SECONDS = 300.0


@dataclass(frozen=True)
class Container:
    pod: str
    name: str
    restarts: int
    ended: str
    """How its latest run before this one ended; empty without one."""


def containers(commands: Commands) -> tuple[Container, ...]:
    """Raises ClusterError."""
    return of_pods(_listed(commands, "pods"))


def of_pods(pods: Iterable[Mapping[str, Any]]) -> tuple[Container, ...]:
    """Those that a kubelet has told of."""
    return tuple(
        Container(
            pod["metadata"]["name"], one["name"], one["restartCount"], _ended(one["lastState"])
        )
        for pod in pods
        for one in pod["status"].get("containerStatuses", [])
    )


def _ended(state: Mapping[str, Any]) -> str:
    end = state.get("terminated")
    return f"{end.get('reason', 'unknown')}, exit code {end['exitCode']}" if end else ""


def restarted(found: Iterable[Container]) -> list[Container]:
    return [one for one in found if one.restarts]


def started_again(before: Iterable[Container], now: Iterable[Container]) -> str:
    """Which containers, how often, and why; empty where there are none."""
    known = {(one.pod, one.name): one.restarts for one in before}
    more = [(one, one.restarts - known.get((one.pod, one.name), 0)) for one in now]
    return "; ".join(
        f"{one.name} of {one.pod}: {times} {'time' if times == 1 else 'times'} ({one.ended})"
        for one, times in more
        if times > 0
    )


def await_answers(commands: Commands) -> None:
    """Wait until each of the operator's Services has a pod that is ready."""

    def look() -> bool:
        return not unanswered(_listed(commands, "endpointslices"))

    until(look, f"each Service in {NAMESPACE} has a ready pod", seconds=READY_SECONDS)


def unanswered(slices: Iterable[Mapping[str, Any]]) -> set[str]:
    """The Services without a pod that is ready."""
    ready: dict[str, bool] = {}
    for one in slices:
        name = one["metadata"]["labels"]["kubernetes.io/service-name"]
        there = any(point["conditions"].get("ready") for point in one.get("endpoints") or [])
        ready[name] = ready.get(name, False) or there
    return {name for name, there in ready.items() if not there}


def _listed(commands: Commands, kind: str) -> list[dict[str, Any]]:
    shown = commands.kubectl("get", kind, "-n", NAMESPACE, "-o", "json").stdout
    found: list[dict[str, Any]] = json.loads(shown)["items"]
    return found

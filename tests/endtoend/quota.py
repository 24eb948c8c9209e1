"""A tenant of one namespace, and what tests of its quota ask of it."""

from __future__ import annotations

import json
from typing import Any

from endtoend.team import Team, pod

GATE = "gpumemory.dev/quota"


def put_tenant(
    team: Team,
    *,
    name: str | None = None,
    labels: dict[str, str] | None = None,
    default_policy: dict[str, Any] | None = None,
    **quota: Any,
) -> None:
    """A tenant called as its team, for the team's namespace unless `labels` say otherwise."""
    spec: dict[str, Any] = {
        "namespaceSelector": {"matchLabels": labels or {"kubernetes.io/metadata.name": team.name}},
        "quota": {"wholeGPU": "80Gi", **quota},
    }
    if default_policy is not None:
        spec["defaultPolicy"] = default_policy
    body = {
        "apiVersion": "gpumemory.dev/v1alpha1",
        "kind": "GPUMemoryTenant",
        "metadata": {"name": name or team.name},
        "spec": spec,
    }
    team.cluster.kubectl("apply", "-f", "-", input=json.dumps(body))


def create(team: Team, name: str, memory: str = "8Gi", **spec: Any) -> None:
    limits = {"nvidia.com/gpu": 1, "nvidia.com/memory": memory}
    answer = team.create(pod(name, limits=limits, **spec))
    assert "created" in answer, answer


def goes_on(team: Team, name: str) -> None:
    gates = ["get", "pod", name, "-o", "jsonpath={.metadata.name}:{.spec.schedulingGates[*].name};"]
    team.until(*gates, until=f"{name}:;")


def waits(team: Team, name: str, *, tenant: str | None = None) -> None:
    """Once the leader has looked at it and found no room."""
    queue = ["get", "gmt", tenant or team.name, "-o", "jsonpath={.status.queue[*].name}"]
    team.until(*queue, until=name)
    assert gates_of(team, name) == [GATE]


def end(team: Team, name: str) -> None:
    team.kubectl("delete", "pod", name, "--force", "--grace-period=0")


def gates_of(team: Team, name: str) -> list[str]:
    found = team.get("pod", name)["spec"].get("schedulingGates") or []
    return [gate["name"] for gate in found]


def status_of(team: Team) -> dict[str, Any]:
    found: dict[str, Any] = team.get("gmt", team.name)["status"]
    return found


def until_charged(team: Team, gibs: int, *, tenant: str | None = None) -> None:
    path = "jsonpath={.metadata.name}:{.status.chargedBytes};"
    ask = ["get", "gmt", tenant or team.name, "-o", path]
    team.until(*ask, until=f":{gibs * 2**30};")


def until_within(team: Team, status: str, *, tenant: str | None = None) -> None:
    """Condition WithinQuota."""
    path = "jsonpath={.status.conditions[?(@.type=='WithinQuota')].status}"
    team.until("get", "gmt", tenant or team.name, "-o", path, until=status)

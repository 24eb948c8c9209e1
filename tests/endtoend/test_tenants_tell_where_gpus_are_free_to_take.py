"""In a tenant's namespace nobody takes GPUs by a variable, or the tenant tells that he could."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from endtoend.team import Team, environment, pod

pytestmark = pytest.mark.cluster

DEVICES = "NVIDIA_VISIBLE_DEVICES"
FROM: list[dict[str, Any]] = [{"configMapRef": {"name": "devices"}}]
CONDITION = 'jsonpath={.status.conditions[?(@.type=="NamespacesNotIsolated")]}'


@pytest.fixture
def tenant(team: Team) -> Iterator[str]:
    """The tenant of the team's namespace; its containers find devices in a ConfigMap."""
    team.cluster.kubectl("label", "namespace", team.name, f"team={team.name}")
    team.kubectl("create", "configmap", "devices", f"--from-literal={DEVICES}=all")
    raw = {
        "apiVersion": "gpumemory.dev/v1alpha1",
        "kind": "GPUMemoryTenant",
        "metadata": {"name": team.name},
        "spec": {
            "namespaceSelector": {"matchLabels": {"team": team.name}},
            "quota": {"limit": "640Gi", "wholeGPU": "80Gi", "onExceeded": "Warn"},
        },
    }
    team.create(raw)
    yield team.name
    team.cluster.kubectl("delete", "gmt", team.name)


def devices(team: Team, name: str, container: int = 0) -> str | None:
    found = team.get("pod", name)["spec"]["containers"][container]
    return {one["name"]: one.get("value") for one in found.get("env", [])}.get(DEVICES)


def test_until_the_namespace_is_isolated_and_then_a_pod_without_a_gpu_sees_none(
    team: Team, tenant: str
) -> None:
    ask = ["get", "gmt", tenant, "-o", CONDITION]
    step = f"kubectl label namespace {team.name} gpumemory.dev/isolate=true"
    team.until(*ask, until=step)
    cpu = pod("early")
    cpu["spec"]["containers"][0] |= {"envFrom": FROM, "resources": {}}
    team.create(cpu)
    assert devices(team, "early") is None  # and its ConfigMap says `all`: so the condition

    team.cluster.kubectl(*step.split()[1:])

    team.until(*ask, until='"status":"False"')
    probe = {**cpu, "metadata": {"name": "probe"}}
    dry_run = ["create", "--dry-run=server", "-o", "json", "-f", "-"]
    team.until(*dry_run, input=json.dumps(probe), until=DEVICES)
    team.create({**cpu, "metadata": {"name": "late"}})
    assert devices(team, "late") == "void"


@pytest.mark.usefixtures("tenant")
def test_beside_a_gpu_it_is_hidden_whatever_the_namespace_says(team: Team) -> None:
    raw = pod()
    raw["spec"]["containers"].append({"name": "logs", "image": "none", "envFrom": FROM})

    said = team.create(raw)

    assert "envFrom can not be read at admission" in said
    assert devices(team, "train", 1) == "void"
    assert DEVICES not in environment(team.get("pod", "train"))

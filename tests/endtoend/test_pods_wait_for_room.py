"""A tenant's pods wait at a scheduling gate until its quota has room for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devcluster.installation import Installation
from endtoend.quota import GATE, create, end, gates_of, goes_on, put_tenant, status_of
from endtoend.team import Team, pod

pytestmark = pytest.mark.cluster

GATES = "jsonpath={.items[*].spec.schedulingGates[*].name}"


@pytest.fixture
def tenant(team: Team) -> Iterator[str]:
    """A quota of 16Gi for the team's namespace, by its name."""
    put_tenant(team, limit="16Gi")
    yield team.name
    team.cluster.kubectl("delete", "gmt", team.name, "--ignore-not-found")


def test_pods_go_on_as_long_as_there_is_room(team: Team, tenant: str) -> None:
    create(team, "first")
    create(team, "second")
    goes_on(team, "first")
    goes_on(team, "second")
    create(team, "third", "4Gi")
    queue = ["get", "gmt", tenant, "-o", "jsonpath={.status.queue[*].name} {.status.chargedBytes}"]
    team.until(*queue, until=f"third {16 * 2**30}")
    assert gates_of(team, "third") == [GATE]
    status = status_of(team)
    assert status["queue"] == [
        {"namespace": team.name, "name": "third", "bytes": 4 * 2**30, "reason": "NoRoom"}
    ]
    assert status["queuedBytes"] == 4 * 2**30
    assert "reservations" not in status or status["reservations"] == []

    events = ["get", "events", "--field-selector=reason=NoRoom", "-o", "jsonpath={..message}"]
    team.until(*events, until="waits in place 1 of 1 for GPU memory of tenant")
    assert "it asks for 4Gi, and 0 of 16Gi are left (16Gi charged" in team.kubectl(*events)

    end(team, "first")
    goes_on(team, "third")


def test_a_raised_quota_lets_pods_through(team: Team, tenant: str) -> None:
    create(team, "first", "16Gi")
    goes_on(team, "first")
    create(team, "second", "16Gi")
    team.until("get", "gmt", tenant, "-o", "jsonpath={.status.queue[*].name}", until="second")
    put_tenant(team, limit="32Gi")
    goes_on(team, "second")


def test_without_their_tenant_pods_go_on_at_once(team: Team, tenant: str) -> None:
    create(team, "first", "16Gi")
    goes_on(team, "first")
    create(team, "second", "16Gi")
    team.until("get", "gmt", tenant, "-o", "jsonpath={.status.queue[*].name}", until="second")
    team.cluster.kubectl("delete", "gmt", tenant)
    goes_on(team, "second")


def test_an_uninstall_lets_all_pods_go_on(
    team: Team, tenant: str, installation: Installation
) -> None:
    create(team, "first", "16Gi")
    goes_on(team, "first")
    create(team, "second", "16Gi", schedulingGates=[{"name": "example.com/other"}])
    team.until("get", "gmt", tenant, "-o", "jsonpath={.status.queue[*].name}", until="second")
    installation.open_gates()
    assert gates_of(team, "second") == ["example.com/other"]


def test_a_group_waits_until_it_is_whole(team: Team, tenant: str) -> None:
    template = pod("unused", limits={"nvidia.com/gpu": 1, "nvidia.com/memory": "8Gi"})
    marks = {
        "labels": {"app": "gang"},
        "annotations": {"gpumemory.dev/group-size": "2"},
    }
    body = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "gang"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "gang"}},
            "template": {"metadata": marks, "spec": template["spec"]},
        },
    }
    assert "created" in team.create(body)
    reason = ["get", "gmt", tenant, "-o", "jsonpath={.status.queue[*].reason}"]
    team.until(*reason, until="GroupIncomplete")
    row = "{range .status.queue[*].group}{.pods} {.missing} {.bytes}{end}"
    assert team.kubectl("get", "gmt", tenant, "-o", f"jsonpath={row}") == f"1 1 {8 * 2**30}"
    team.kubectl("scale", "replicaset/gang", "--replicas=2")
    charged = ["get", "gmt", tenant, "-o", "jsonpath={.status.chargedBytes}"]
    team.until(*charged, until=str(16 * 2**30))
    assert team.kubectl("get", "pods", "-o", GATES).strip() == ""

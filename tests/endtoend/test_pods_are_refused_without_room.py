"""A tenant that refuses: its pods get room before they are stored, or are told why not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from endtoend.quota import GATE, create, end, gates_of, put_tenant, status_of
from endtoend.team import PAUSE_SECONDS, Team, pod
from gpumem_operator.kube.api import Api, connect
from gpumem_operator.kube.errors import ApiError
from gpumem_operator.kube.resources import PODS
from patience import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.cluster

GIB = 2**30
MARK = "gpumemory.dev/reserve"


@pytest.fixture
def tenant(team: Team) -> Iterator[str]:
    """A quota of 16Gi for the team's namespace, by its name; it has been counted."""
    put_tenant(team, limit="16Gi", onExceeded="Reject")
    counted(team)
    yield team.name
    team.cluster.kubectl("delete", "gmt", team.name, "--ignore-not-found")


def counted(team: Team) -> None:
    """Until the leader has counted what the present spec means."""

    def is_counted() -> bool:
        found = team.get("gmt", team.name)
        status = found.get("status") or {}
        return bool(status.get("observedGeneration") == found["metadata"]["generation"])

    eventually(is_counted)


def gpu_pod(name: str, memory: str = "8Gi", **fields: Any) -> dict[str, Any]:
    return pod(name, limits={"nvidia.com/gpu": 1, "nvidia.com/memory": memory}, **fields)


def marked(raw: dict[str, Any], value: str) -> dict[str, Any]:
    """The pod with the mark of admission, written by its author."""
    return {**raw, "metadata": {**raw["metadata"], "labels": {MARK: value}}}


def charged(team: Team, amount: int) -> None:
    """Until so much is charged, and nothing reserved any more."""

    def settled() -> bool:
        status = status_of(team)
        return status.get("chargedBytes") == amount and not status.get("reservations")

    eventually(settled)


def test_a_pod_gets_room_at_once_or_reads_why_not(team: Team, tenant: str) -> None:
    create(team, "first")
    create(team, "second", "4Gi")
    stored = team.get("pod", "first")
    assert stored["metadata"]["labels"][MARK] == "true"
    assert "schedulingGates" not in stored["spec"]
    charged(team, 12 * GIB)
    team.until("get", "gmt", tenant, "-o", "jsonpath={.status.topPods[*].name}", until="second")

    answer = team.create(gpu_pod("third"))
    assert f"GPU pod {team.name}/third is refused: tenant {tenant}: the pod asks for 8Gi" in answer
    assert "4Gi of 16Gi are left (12Gi charged, 0 reserved for pods on their way)" in answer
    assert f"Most is charged to {team.name}/first 8Gi, {team.name}/second 4Gi" in answer
    assert "next step: try again when pods of the tenant have ended" in answer

    end(team, "first")
    team.until("create", "-f", "-", input=json.dumps(gpu_pod("third")), until="created")
    charged(team, 12 * GIB)


@pytest.mark.usefixtures("tenant")
async def test_thirty_clients_get_exactly_what_there_is(team: Team) -> None:
    put_tenant(team, limit="80Gi", onExceeded="Reject")
    counted(team)
    async with connect(team.cluster.kubeconfig) as api:
        crowd = Crowd(api, team.name, places=10)
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as clients:
            for number in range(30):
                clients.create_task(crowd.client(f"pod-{number}"))
    assert len(crowd.refused) == 20
    assert all("0 of 80Gi are left" in answer for answer in crowd.refused), crowd.refused
    charged(team, 80 * GIB)
    assert len(team.kubectl("get", "pods", "-o", "name").split()) == 10
    within = [one for one in status_of(team)["conditions"] if one["type"] == "WithinQuota"]
    assert within[0]["status"] == "True", within


class Crowd:
    """Clients that try again for as long as there should be a place."""

    def __init__(self, api: Api, namespace: str, *, places: int) -> None:
        self._api = api
        self._path = PODS.path(namespace=namespace)
        self._left = places
        self.refused: list[str] = []
        """What the last answer to each said who got none."""

    async def client(self, name: str) -> None:
        while True:
            full = self._left == 0
            try:
                await self._api.create(self._path, gpu_pod(name))
            except ApiError as error:
                # A busy machine may be late. Room that was reserved all the same lapses.
                if full and "are left" in str(error):
                    self.refused.append(str(error))
                    return
            else:
                self._left -= 1
                return
            await asyncio.sleep(PAUSE_SECONDS)


@pytest.mark.usefixtures("tenant")
def test_a_dry_run_reserves_nothing_and_says_what_would_be(team: Team) -> None:
    dry = ["create", "--dry-run=server", "-f", "-"]
    assert "created (server dry run)" in team.kubectl(*dry, input=json.dumps(gpu_pod("dry")))
    assert not status_of(team).get("reservations")
    create(team, "real", "16Gi")
    charged(team, 16 * GIB)
    answer = team.kubectl(*dry, input=json.dumps(gpu_pod("dry")))
    assert "0 of 16Gi are left" in answer


@pytest.mark.usefixtures("tenant")
def test_what_is_refused_after_us_keeps_its_room_until_it_lapses(team: Team) -> None:
    """A ResourceQuota decides after all webhooks; the leader finds that there is no such pod."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none"},
        "spec": {"hard": {"pods": "0"}},
    }
    assert "created" in team.create(quota)
    team.until("get", "resourcequota", "none", "-o", "jsonpath={.status.hard.pods}", until="0")
    assert "exceeded quota" in team.create(gpu_pod("late"))
    [reserved] = status_of(team)["reservations"]
    assert (reserved["name"], reserved["bytes"]) == ("late", 8 * GIB)
    team.kubectl("delete", "resourcequota", "none")
    create(team, "other")
    answer = team.create(gpu_pod("third"))
    assert "8Gi reserved for pods on their way" in answer
    eventually(lambda: not status_of(team).get("reservations"))
    team.until("create", "-f", "-", input=json.dumps(gpu_pod("third")), until="created")


@pytest.mark.usefixtures("tenant")
def test_a_replica_set_tells_why_and_recovers(team: Team) -> None:
    create(team, "first", "12Gi")
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "serve"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "serve"}},
            "template": {"metadata": {"labels": {"app": "serve"}}, "spec": gpu_pod("x")["spec"]},
        },
    }
    assert "created" in team.create(body)
    events = ["get", "events", "--field-selector=reason=FailedCreate", "-o", "jsonpath={..message}"]
    team.until(*events, until="the pod asks for 8Gi, and 4Gi of 16Gi are left (12Gi charged")
    end(team, "first")
    ready = ["get", "pods", "-l", "app=serve", "-o", "jsonpath={.items[*].metadata.name}"]
    team.until(*ready, until="serve-")


@pytest.mark.usefixtures("tenant")
def test_a_mark_of_the_author_gains_nothing(team: Team) -> None:
    create(team, "first", "16Gi")
    charged(team, 16 * GIB)
    assert "0 of 16Gi are left" in team.create(marked(gpu_pod("forged"), "false"))
    put_tenant(team, limit="16Gi", onExceeded="Queue")
    assert "created" in team.create(marked(gpu_pod("waits", "16Gi"), "true"))
    assert MARK not in team.get("pod", "waits")["metadata"]["labels"]
    assert gates_of(team, "waits") == [GATE]


@pytest.fixture
def drops_marks(team: Team) -> Iterator[None]:
    """Somebody else's admission takes the mark away wherever it finds it, once this is yielded."""
    meta = {"name": f"drops-marks-{team.name}"}
    key = MARK.replace("/", "~1")
    policy = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": team.name}},
            "resourceRules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["pods"],
                }
            ],
        },
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {
                    "expression": f"'{MARK}' in object.metadata.?labels.orValue({{}})"
                    f' ? [JSONPatch{{op: "remove", path: "/metadata/labels/{key}"}}] : []'
                },
            }
        ],
    }
    kinds = {
        "MutatingAdmissionPolicy": policy,
        "MutatingAdmissionPolicyBinding": {"policyName": meta["name"]},
    }
    for kind, spec in kinds.items():
        body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind}
        team.cluster.kubectl(
            "create", "-f", "-", input=json.dumps(body | {"metadata": meta, "spec": spec})
        )
    processors = pod("cpu", limits={"cpu": "1"})
    dry = ["create", "--dry-run=server", "-o", "jsonpath=<{.metadata.labels}>", "-f", "-"]
    team.until(*dry, input=json.dumps(marked(processors, "true")), until="<>")
    yield
    for kind in reversed(kinds):
        team.cluster.kubectl("delete", kind, meta["name"])


@pytest.mark.usefixtures("tenant", "drops_marks")
def test_a_mark_that_others_drop_is_put_back(team: Team) -> None:
    create(team, "first", "16Gi")
    assert team.get("pod", "first")["metadata"]["labels"][MARK] == "true"
    charged(team, 16 * GIB)
    assert "0 of 16Gi are left" in team.create(gpu_pod("second"))


@pytest.mark.usefixtures("tenant")
def test_a_pod_that_names_its_node_asks_a_queue_for_room(team: Team) -> None:
    put_tenant(team, limit="16Gi")
    counted(team)
    assert "created" in team.create(gpu_pod("placed", "12Gi", nodeName="gpu-1"))
    assert "schedulingGates" not in team.get("pod", "placed")["spec"]
    charged(team, 12 * GIB)
    assert "4Gi of 16Gi are left" in team.create(gpu_pod("again", nodeName="gpu-1"))


def test_all_tenants_of_a_namespace_have_to_agree(team: Team, tenant: str) -> None:
    other = f"{tenant}-z"
    put_tenant(team, name=other, limit="8Gi", onExceeded="Reject")
    try:
        counted(team)
        eventually(lambda: team.get("gmt", other).get("status", {}).get("chargedBytes") == 0)
        create(team, "first", "8Gi")
        charged(team, 8 * GIB)
        answer = team.create(gpu_pod("second", "4Gi"))
        assert f"tenant {other}: the pod asks for 4Gi, and 0 of 8Gi are left" in answer
        # What the first tenant had reserved for it is given back.
        eventually(lambda: not status_of(team).get("reservations"))
    finally:
        team.cluster.kubectl("delete", "gmt", other)

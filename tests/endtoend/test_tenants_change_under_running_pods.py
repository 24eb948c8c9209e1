"""Whatever becomes of a tenant, its pods stay: too much is a condition, and new pods wait."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from endtoend.quota import (
    GATE,
    create,
    end,
    gates_of,
    goes_on,
    put_tenant,
    until_charged,
    until_within,
    waits,
)
from endtoend.team import Team, environment, pod

pytestmark = pytest.mark.cluster

TOO_MUCH = "jsonpath={.status.conditions[?(@.type=='WithinQuota')].message}"


@pytest.fixture(autouse=True)
def tenants(team: Team) -> Iterator[None]:
    """Takes the tenants of a test away again."""
    yield
    both = (team.name, second(team))
    team.cluster.kubectl("delete", "gmt", *both, "--ignore-not-found")


def second(team: Team) -> str:
    return f"{team.name}-second"


def label(team: Team, *labels: str) -> None:
    team.cluster.kubectl("label", "namespace", team.name, "--overwrite", *labels)


@contextmanager
def updates_of_pods_fail(team: Team) -> Iterator[None]:
    """Somebody's webhook has to be asked about each, and nobody answers for it."""
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    hook = {
        "name": "nobody.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{**pods, "operations": ["UPDATE"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": team.name}},
        "sideEffects": "None",
        "timeoutSeconds": 1,
        "admissionReviewVersions": ["v1"],
    }
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": team.name},
        "webhooks": [hook],
    }
    team.cluster.kubectl("create", "-f", "-", input=json.dumps(body))
    try:
        # API servers take it up on their own time.
        team.create(pod("probe", limits={"cpu": "1"}))
        team.until("label", "pod", "probe", "--overwrite", "a=b", until="failed calling webhook")
        yield
    finally:
        team.cluster.kubectl("delete", "validatingwebhookconfiguration", team.name)


def uid(team: Team, name: str) -> str:
    found: str = team.get("pod", name)["metadata"]["uid"]
    return found


def test_a_tenant_over_pods_that_were_there_charges_them_and_lets_no_more_in(team: Team) -> None:
    create(team, "first")
    create(team, "old", "16Gi")
    before = uid(team, "old")

    put_tenant(team, limit="16Gi")

    until_charged(team, 24)
    until_within(team, "False")
    message = team.kubectl("get", "gmt", team.name, "-o", TOO_MUCH)
    assert "24Gi is charged and the quota is 16Gi: 8Gi too much" in message
    create(team, "new", "1Gi")
    waits(team, "new")
    assert uid(team, "old") == before
    end(team, "old")
    goes_on(team, "new")
    until_within(team, "True")


def test_a_lowered_limit_evicts_nobody(team: Team) -> None:
    put_tenant(team, limit="16Gi")
    for name in ("first", "other"):
        create(team, name)
        goes_on(team, name)
    before = uid(team, "first"), uid(team, "other")
    until_charged(team, 16)

    put_tenant(team, limit="8Gi")

    until_within(team, "False")
    create(team, "new", "1Gi")
    waits(team, "new")
    assert (uid(team, "first"), uid(team, "other")) == before
    end(team, "first")
    end(team, "other")
    goes_on(team, "new")


def test_pods_about_to_go_on_wait_again_where_the_limit_was_lowered(team: Team) -> None:
    """As when their gates could not be opened for a while: a webhook of somebody else is down."""
    put_tenant(team, limit="16Gi")
    with updates_of_pods_fail(team):
        for name in ("first", "other"):
            create(team, name)
        kept = "jsonpath={.status.reservations[*].name}"
        team.until("get", "gmt", team.name, "-o", kept, until="first other")
        put_tenant(team, limit="8Gi")
        generation = team.get("gmt", team.name)["metadata"]["generation"]
        seen = "jsonpath={.status.observedGeneration};"
        team.until("get", "gmt", team.name, "-o", seen, until=f"{generation};")
    goes_on(team, "first")
    waits(team, "other")
    until_charged(team, 8)


def test_a_namespace_that_gets_another_label_takes_its_pods_to_the_other_tenant(
    team: Team,
) -> None:
    label(team, f"team={team.name}")
    put_tenant(team, labels={"team": team.name}, limit="8Gi")
    put_tenant(team, name=second(team), labels={"team": second(team)}, limit="16Gi")
    create(team, "first")
    goes_on(team, "first")
    create(team, "next")
    waits(team, "next")

    label(team, f"team={second(team)}")

    goes_on(team, "next")
    until_charged(team, 16, tenant=second(team))
    until_charged(team, 0)


def test_a_selector_that_leaves_a_namespace_lets_go_what_waits_there(team: Team) -> None:
    put_tenant(team, limit="8Gi")
    create(team, "first")
    goes_on(team, "first")
    create(team, "next")
    waits(team, "next")

    put_tenant(team, labels={"team": "nobody"}, limit="8Gi")

    goes_on(team, "next")
    until_charged(team, 0)


def next_waits_in_the_second(team: Team) -> None:
    """Of two tenants, only the first has room for another pod."""
    put_tenant(team, limit="16Gi")
    put_tenant(team, name=second(team), limit="8Gi")
    create(team, "first")
    until_charged(team, 8)
    until_charged(team, 8, tenant=second(team))
    create(team, "next")
    waits(team, "next", tenant=second(team))


def test_in_two_tenants_a_pod_needs_room_in_both(team: Team) -> None:
    next_waits_in_the_second(team)
    until_charged(team, 8)

    put_tenant(team, name=second(team), limit="16Gi")

    goes_on(team, "next")
    until_charged(team, 16)
    until_charged(team, 16, tenant=second(team))


def test_room_that_was_kept_for_a_pod_is_given_away_only_once_the_pod_is_fenced(
    team: Team,
) -> None:
    """As when its namespace came to a second tenant after a leader had reserved in the first."""
    next_waits_in_the_second(team)
    before = team.get("pod", "next")["metadata"]

    kept = {"namespace": team.name, "name": "next", "podUID": before["uid"], "bytes": 8 * 2**30}
    change = json.dumps({"status": {"reservations": [kept]}})
    where = ["gmt", team.name, "--subresource=status", "--type=merge", "-p", change]
    team.cluster.kubectl("patch", *where)

    mark = r"jsonpath={.metadata.annotations.gpumemory\.dev/fence}"
    epoch = team.get("gmt", team.name)["status"]["epoch"]
    team.until("get", "pod", "next", "-o", mark, until=f"{epoch}.")
    reservations = "jsonpath={.metadata.name}:{.status.reservations};"
    team.until("get", "gmt", team.name, "-o", reservations, until=":[];")
    after = team.get("pod", "next")["metadata"]
    assert after["resourceVersion"] != before["resourceVersion"]
    assert gates_of(team, "next") == [GATE]

    put_tenant(team, name=second(team), limit="16Gi")

    goes_on(team, "next")


def test_in_a_tenant_that_warns_beside_one_that_queues_only_the_latter_is_asked(
    team: Team,
) -> None:
    put_tenant(team, limit="1Gi", onExceeded="Warn")
    put_tenant(team, name=second(team), limit="8Gi")
    create(team, "first")
    goes_on(team, "first")
    until_charged(team, 8)
    until_within(team, "False")
    until_within(team, "True", tenant=second(team))


def test_the_default_policy_applies_where_no_policy_of_the_namespace_does(team: Team) -> None:
    put_tenant(team, limit="64Gi", default_policy={"limits": {"default": "4Gi", "max": "16Gi"}})
    team.create(pod("plain"))
    assert environment(team.get("pod", "plain"))["GPUMEM_LIMIT_BYTES"] == str(4 * 2**30)
    goes_on(team, "plain")
    until_charged(team, 4)
    refused = team.create(pod("large", limits={"nvidia.com/gpu": 1, "nvidia.com/memory": "32Gi"}))
    assert f"defaultPolicy of tenant {team.name} decides for this pod" in refused

    team.policy(limits={"default": "8Gi"})
    dry_run = ["create", "--dry-run=server", "-o", "yaml", "-f", "-"]
    team.until(*dry_run, input=json.dumps(pod("chosen")), until=f"policy {team.name}/training")
    team.create(pod("chosen"))

    assert environment(team.get("pod", "chosen"))["GPUMEM_LIMIT_BYTES"] == str(8 * 2**30)
    goes_on(team, "chosen")
    until_charged(team, 12)


def test_the_gates_of_others_are_theirs(team: Team) -> None:
    """Kueue's, for example: the pod is charged as soon as ours is open."""
    kueue = "kueue.x-k8s.io/admission"
    put_tenant(team, limit="8Gi")
    create(team, "queued", schedulingGates=[{"name": kueue}])
    until_charged(team, 8)
    assert gates_of(team, "queued") == [kueue]
    create(team, "next", "1Gi")
    waits(team, "next")


def test_a_resource_quota_of_the_namespace_counts_the_same_bytes(team: Team) -> None:
    put_tenant(team, limit="64Gi")
    hard = "--hard=requests.nvidia.com/memory=64Gi"
    team.kubectl("create", "quota", "memory", hard)
    create(team, "two", "12Gi")
    sidecar: dict[str, Any] = {"name": "side", "image": "none", "restartPolicy": "Always"}
    sidecar["resources"] = {"limits": {"nvidia.com/gpu": 1, "nvidia.com/memory": "4Gi"}}
    step: dict[str, Any] = {"name": "step", "image": "none"}
    step["resources"] = {"limits": {"nvidia.com/gpu": 1, "nvidia.com/memory": "20Gi"}}
    create(team, "steps", "1Gi", initContainers=[sidecar, step])
    goes_on(team, "two")
    goes_on(team, "steps")
    until_charged(team, 36)
    used = ["get", "resourcequota", "memory", "-o", "jsonpath={.status.used}"]
    team.until(*used, until='"requests.nvidia.com/memory":"36Gi"')

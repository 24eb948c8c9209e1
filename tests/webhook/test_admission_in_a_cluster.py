"""What the API server stores, and refuses, with the webhook behind it."""

import json
from typing import Any

import pytest

from devcluster import Cluster
from devcluster.installation import Installation
from gpumem_operator import names
from patience import eventually
from webhook.builders import claim_pod, cpu_pod, gpu_pod, pod, policy, tenant
from webhook.in_a_cluster import (
    apply,
    as_authored,
    complaints,
    create,
    env_of,
    is_handled,
    reviews,
)

pytestmark = pytest.mark.cluster


def test_a_gpu_pod_gets_its_limit_with_one_call(
    cluster: Cluster, webhook: Installation, team: str
) -> None:
    before = reviews(webhook)
    pod = create(cluster, gpu_pod(namespace=team))
    assert env_of(pod)[names.LIMIT_BYTES_ENV] == str(8 * 2**30)
    assert pod["spec"]["serviceAccountName"] == "default"
    assert reviews(webhook) - before == 1


def test_a_pod_without_a_gpu_makes_no_call(
    cluster: Cluster, webhook: Installation, team: str
) -> None:
    before = reviews(webhook)
    assert not is_handled(create(cluster, cpu_pod(namespace=team)))
    assert reviews(webhook) == before


@pytest.mark.parametrize("path", ["mutate-pod", "mutate-ephemeral-containers"])
def test_the_charts_paths_are_the_ones_that_are_answered(
    cluster: Cluster, webhook: Installation, path: str
) -> None:
    found = cluster.kubectl("get", "mutatingwebhookconfiguration", webhook.release, "-o", "json")
    hooks = json.loads(found.stdout)["webhooks"]
    urls = [hook["clientConfig"]["url"] for hook in hooks]
    assert f"{webhook.webhook_url}/{path}" in urls


def test_a_path_that_the_webhook_does_not_know_refuses_pods(
    cluster: Cluster, webhook: Installation, team: str
) -> None:
    found = cluster.kubectl("get", "mutatingwebhookconfiguration", webhook.release, "-o", "json")
    configuration = json.loads(found.stdout)
    hook = configuration["webhooks"][0]
    hook["name"] = "astray.example.com"
    hook["clientConfig"]["url"] += "s"
    configuration["webhooks"] = [hook]
    configuration["metadata"] = {"name": "astray"}
    cluster.kubectl("create", "-f", "-", input=json.dumps(configuration))
    try:
        eventually(
            lambda: isinstance(create(cluster, gpu_pod(namespace=team), "--dry-run=server"), str)
        )
        assert "mutate-pods" in create(cluster, gpu_pod(namespace=team))
    finally:
        cluster.kubectl("delete", "mutatingwebhookconfiguration", "astray")


@pytest.mark.usefixtures("webhook")
@pytest.mark.parametrize("number", range(3))
def test_a_pod_in_a_burst_gets_the_policy_that_came_just_before_it(
    cluster: Cluster, number: int
) -> None:
    name = f"burst-policy-{number}"
    assert create_at_once(cluster, name, policy(namespace=name)) == ""
    pod = json.loads(cluster.kubectl("get", "pod", "train", "-n", name, "-o", "json").stdout)
    assert is_handled(pod)


@pytest.mark.usefixtures("webhook")
@pytest.mark.parametrize("with_policy", [True, False], ids=["with a policy", "without a policy"])
def test_a_pod_in_a_burst_is_judged_by_the_tenant_that_came_just_before_it(
    cluster: Cluster, with_policy: bool
) -> None:
    name = f"burst-tenant-{str(with_policy).lower()}"
    small = tenant(name, team=name)
    small["spec"]["quota"]["limit"] = "4Gi"
    policies = [policy(namespace=name)] if with_policy else []
    assert "the whole quota of 4Gi" in create_at_once(cluster, name, *policies, small)
    cluster.kubectl("delete", names.TENANT_PLURAL, name)


def create_at_once(cluster: Cluster, namespace: str, *before_the_pod: dict[str, Any]) -> str:
    """A namespace and all in it with one command; returns what was refused."""
    # A namespace has no default account for some milliseconds, and pods need one.
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "quick"}}
    pod = gpu_pod(namespace=namespace)
    pod["spec"]["serviceAccountName"] = "quick"
    head = {"name": namespace, "labels": {"team": namespace}}
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": head},
        account | {"metadata": {"name": "quick", "namespace": namespace}},
        *map(as_authored, before_the_pod),
        pod,
    ]
    everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    said = cluster.kubectl("create", "-f", "-", input=everything, check=False).stderr
    return "".join(line for line in said.splitlines() if not line.startswith("Warning: "))


@pytest.mark.usefixtures("webhook")
@pytest.mark.parametrize(
    ("budget", "requested"),
    [
        ({"requests": {"cpu": "1", "memory": "1Gi"}}, {"cpu": "1", "memory": "1Gi"}),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, {"memory": "1Gi"}),
    ],
    ids=["requests", "limits"],
)
def test_a_pod_with_a_budget_is_let_in(
    cluster: Cluster, team: str, budget: dict[str, Any], requested: dict[str, str]
) -> None:
    """spec.resources bounds what the containers request together, ours among them."""
    asking = gpu_pod(namespace=team)
    asking["spec"]["resources"] = budget
    asking["spec"]["containers"][0]["resources"]["requests"] |= requested
    assert is_handled(create(cluster, asking))


@pytest.mark.usefixtures("webhook")
@pytest.mark.parametrize("gpus", [None, "0", "1"], ids=["nothing else", "no GPU", "a GPU"])
def test_a_gpu_by_claim_is_warned_of(cluster: Cluster, team: str, gpus: str | None) -> None:
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "card", "namespace": team},
        "spec": {
            "devices": {
                "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]
            }
        },
    }
    create(cluster, claim)
    asking = claim_pod(claim="card")
    asking["metadata"] = {"generateName": "claims-", "namespace": team}
    if gpus is not None:
        # What asks for a GPU as well takes the one of its claim no less.
        asking["spec"]["containers"][0]["resources"] = {"limits": {names.GPU_RESOURCE: gpus}}
    result = cluster.kubectl("create", "-f", "-", input=json.dumps(asking))
    assert "takes a GPU through claim card of class gpu.nvidia.com" in result.stderr


@pytest.mark.usefixtures("webhook")
@pytest.mark.parametrize(
    "resource", ["deviceclass.resource.kubernetes.io/gpu.nvidia.com", "example.com/card"]
)
def test_a_gpu_by_an_extended_resource_is_warned_of(
    cluster: Cluster, team: str, resource: str
) -> None:
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu.nvidia.com"},
        "spec": {"extendedResourceName": "example.com/card"},
    }
    apply(cluster, device_class)
    asking = pod("asking", namespace=team, limits={resource: "1", names.GPU_RESOURCE: "0"})
    result = cluster.kubectl("create", "-f", "-", input=json.dumps(asking))
    assert f"takes a GPU through resource {resource} of class gpu.nvidia.com" in result.stderr


def test_the_webhook_asks_for_nothing_that_it_may_not_have(webhook: Installation) -> None:
    """The log tells about all tests before."""
    assert complaints(webhook) == []

"""Least privilege: of the pods, of their accounts, and of the people who use the chart."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import yaml

from builders import CERTIFICATE
from chart_rendering import ON_NODES, Object, of_kind, refusal, render, rendered_text

_PLACES: list[dict[str, Any]] = [
    {"scaling": {"targets": [{"group": "engines.example", "resource": "engines"}]}},
    {"operator": {"deploy": False}, "webhook": {"url": "https://127.0.0.1:9443"}},
]
COMBINATIONS = [
    {"certificates": certificates, "resourceClaims": claims, **place}
    for certificates, claims, place in itertools.product(
        [{}, {"mode": "Provided", "secretName": "mine", "caBundle": CERTIFICATE}],
        ["Warn", "Refuse"],
        _PLACES,
    )
]
ROLES = ("Role", "ClusterRole")


def pods() -> list[Object]:
    return [found["spec"]["template"]["spec"] for found in of_kind(render(), "Deployment")]


def test_pods_meet_the_restricted_standard_with_a_read_only_root() -> None:
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] != 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
        for volume in pod["volumes"]:
            assert "hostPath" not in volume
            assert "emptyDir" not in volume or volume["emptyDir"]["sizeLimit"] == "16Mi"


def test_pods_are_bounded_and_probed() -> None:
    for pod in pods():
        [container] = pod["containers"]
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
            assert container[probe]["httpGet"] == {"path": path, "port": "health"}
        assert f"--health-port={ports['health']}" in container["args"]


def test_two_webhooks_answer_also_while_nodes_are_drained_and_versions_change() -> None:
    manifests = render()
    [budget] = of_kind(manifests, "PodDisruptionBudget")
    deployments = of_kind(manifests, "Deployment")
    [webhook] = [found for found in deployments if "webhook" in found["metadata"]["name"]]

    assert webhook["spec"]["replicas"] == 2
    assert webhook["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert budget["spec"]["maxUnavailable"] == 1
    assert budget["spec"]["selector"] == webhook["spec"]["selector"]
    for deployment in deployments:
        affinity = deployment["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
        assert affinity.keys() == {"preferredDuringSchedulingIgnoredDuringExecution"}


def test_a_webhook_on_the_network_of_its_node_shares_none_of_its_ports() -> None:
    deployments = {
        found["spec"]["template"]["spec"]["containers"][0]["name"]: found["spec"]
        for found in of_kind(render(ON_NODES | {"metrics": {"annotations": True}}), "Deployment")
    }
    webhook, controller = (deployments[role]["template"] for role in ("webhook", "controller"))

    assert webhook["spec"]["hostNetwork"] is True
    assert webhook["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    [container] = webhook["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"webhook": 10443, "health": 10081}
    assert {"--port=10443", "--health-port=10081"} <= set(container["args"])
    assert webhook["metadata"]["annotations"]["prometheus.io/port"] == "10081"
    # Its successor may find a port on no node before one of them has gone.
    update = deployments["webhook"]["strategy"]["rollingUpdate"]
    assert update == {"maxUnavailable": 1, "maxSurge": 1}
    assert controller["spec"].keys().isdisjoint({"hostNetwork", "dnsPolicy"})
    assert controller["metadata"]["annotations"]["prometheus.io/port"] == "8081"


def test_helm_refuses_one_port_for_two_servers() -> None:
    assert "both 9443" in refusal({"webhook": {"healthPort": 9443}})


def test_a_change_of_the_settings_starts_new_pods() -> None:
    def checksums(values: dict[str, Any]) -> set[str]:
        return {
            found["spec"]["template"]["metadata"]["annotations"]["checksum/settings"]
            for found in of_kind(render(values), "Deployment")
        }

    assert len(checksums({})) == 1
    assert checksums({}).isdisjoint(checksums({"runVolumeSize": "32Mi"}))


def test_each_role_has_an_account_of_its_own() -> None:
    manifests = render()
    accounts = [pod["serviceAccountName"] for pod in pods()]

    assert len(set(accounts)) == 2
    # The reader's has no pod and no rights: its tokens show who may ask the leader.
    reader = "gpu-memory-operator-reader"
    job = "gpu-memory-operator-uninstall"
    assert {found["metadata"]["name"] for found in of_kind(manifests, "ServiceAccount")} == {
        *accounts,
        reader,
        job,
    }
    for binding in of_kind(manifests, "RoleBinding", "ClusterRoleBinding"):
        [subject] = binding["subjects"]
        assert binding["roleRef"]["name"] == subject["name"]


@pytest.mark.parametrize("values", COMBINATIONS, ids=str)
def test_no_right_is_wider_than_it_says(values: dict[str, Any]) -> None:
    for role in of_kind(render(values), *ROLES):
        for rule in role["rules"]:
            everything = [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
            assert not [word for word in everything if "*" in word]
            if "secrets" in rule["resources"]:
                assert rule["resourceNames"]
                assert role["kind"] == "Role"
            if "create" in rule["verbs"] and not any("/" in what for what in rule["resources"]):
                assert "resourceNames" not in rule, "creation can not be bound to a name"


def test_tokens_are_made_for_one_account_only() -> None:
    rules = [rule for role in of_kind(render(), *ROLES) for rule in role["rules"]]
    (tokens,) = [rule for rule in rules if "serviceaccounts/token" in rule["resources"]]
    assert tokens["resourceNames"] == ["gpu-memory-operator-reader"]
    (proxy,) = [rule for rule in rules if "services/proxy" in rule["resources"]]
    assert proxy["resourceNames"] == ["https:gpu-memory-operator-report:reports"]
    assert proxy["verbs"] == ["get"]


def _scales(values: dict[str, Any]) -> dict[str, set[str]]:
    """Rights on scale subresources, as verbs by group and resource."""
    rules = [rule for role in of_kind(render(values), "ClusterRole") for rule in role["rules"]]
    return {
        f"{group}/{resource}": set(rule["verbs"])
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if resource.endswith("/scale")
    }


def test_the_controller_scales_two_kinds_and_those_that_a_value_names() -> None:
    verbs = {"get", "patch"}
    two = {"apps/deployments/scale": verbs, "apps/statefulsets/scale": verbs}
    assert _scales({}) == two
    engines = {"group": "engines.example", "resource": "engines"}
    more = {"engines.example/engines/scale": verbs}
    assert _scales({"scaling": {"targets": [engines]}}) == two | more
    rules = [rule for role in of_kind(render(), "ClusterRole") for rule in role["rules"]]
    whole = {"deployments", "statefulsets", "replicasets"}
    assert not [rule for rule in rules if whole & set(rule["resources"])], "not the workload itself"


@pytest.mark.parametrize("values", COMBINATIONS, ids=str)
def test_every_right_says_what_needs_it(values: dict[str, Any]) -> None:
    documents = [
        document
        for document in rendered_text(values).split("\n---")
        if (loaded := yaml.safe_load(document)) and loaded["kind"] in ROLES
    ]
    assert documents
    for document in documents:
        lines = document.splitlines()
        rules = lines[lines.index("rules:") + 1 :]
        starts = [index for index, line in enumerate(rules) if line.startswith("  - ")]
        assert starts
        for index in starts:
            assert rules[index - 1].startswith("  # "), (
                f"no comment above {rules[index : index + 3]}"
            )


def test_everyone_may_look_and_only_the_platform_may_write() -> None:
    roles = {found["metadata"]["name"]: found for found in of_kind(render(), "ClusterRole")}
    aggregated = {
        name: {
            label.removeprefix("rbac.authorization.k8s.io/aggregate-to-")
            for label in role["metadata"]["labels"]
            if label.startswith("rbac.authorization.k8s.io/")
        }
        for name, role in roles.items()
    }

    assert {name: to for name, to in aggregated.items() if to} == {
        "gpu-memory-operator-view": {"view"}
    }
    for rule in roles["gpu-memory-operator-view"]["rules"]:
        assert set(rule["verbs"]) == {"get", "list", "watch"}
    writing = {
        name
        for name, role in roles.items()
        for rule in role["rules"]
        if "gpumemory.dev" in rule["apiGroups"]
        and {"gpumemorypolicies", "gpumemorytenants"} & set(rule["resources"])
        and not set(rule["verbs"]) <= {"get", "list", "watch"}
    }
    assert writing == {"gpu-memory-operator-platform"}

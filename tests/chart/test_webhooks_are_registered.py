"""A wrong path or selector would switch enforcement off without anybody noticing."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from builders import CERTIFICATE
from chart_rendering import NAMESPACE, RELEASE, hooks, of_kind, render, settings
from gpumem_operator import names

ISOLATING = {names.ISOLATE_POD, names.ISOLATE_EPHEMERAL}
"""Left out where the API server isolates by itself."""
IDS = {
    names.MUTATE_POD,
    names.MUTATE_EPHEMERAL,
    names.RESERVE_ROOM,
    names.CHECK_CLAIMS,
} | ISOLATING
ON_HOST = {"operator": {"deploy": False}, "webhook": {"url": "https://127.0.0.1:9443"}}
PROVIDED = {"certificates": {"mode": "Provided", "secretName": "mine", "caBundle": CERTIFICATE}}


def test_the_paths_are_the_ids_of_the_handlers() -> None:
    registered = hooks(render())

    assert registered.keys() == IDS
    for identity, hook in registered.items():
        service = hook["clientConfig"]["service"]
        assert service == {
            "name": f"{RELEASE}-webhook",
            "namespace": NAMESPACE,
            "path": f"/{identity}",
            "port": 443,
        }


def test_processes_on_the_host_are_called_by_url() -> None:
    for url in ("https://127.0.0.1:9443", "https://127.0.0.1:9443/"):
        registered = hooks(render({**ON_HOST, "webhook": {"url": url}}))

        assert {identity: hook["clientConfig"] for identity, hook in registered.items()} == {
            identity: {"url": f"https://127.0.0.1:9443/{identity}"} for identity in IDS
        }


def test_the_service_leads_to_the_webhook() -> None:
    manifests = render()
    [service] = [
        found
        for found in of_kind(manifests, "Service")
        if found["metadata"]["name"] == f"{RELEASE}-webhook"
    ]
    [webhook] = [
        found
        for found in of_kind(manifests, "Deployment")
        if "webhook" in found["metadata"]["name"]
    ]
    template = webhook["spec"]["template"]

    assert (
        service["metadata"]["name"]
        == hooks(manifests)[names.MUTATE_POD]["clientConfig"]["service"]["name"]
    )
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    [port] = service["spec"]["ports"]
    [container] = template["spec"]["containers"]
    assert {p["name"]: p["containerPort"] for p in container["ports"]}[port["targetPort"]] == 9443
    assert "--port=9443" in container["args"]


def test_the_certificate_is_made_for_the_name_that_is_called() -> None:
    def hosts(values: dict[str, Any]) -> list[str]:
        [controller] = [
            found
            for found in of_kind(render(values), "Deployment")
            if "controller" in found["metadata"]["name"]
        ]
        [container] = controller["spec"]["template"]["spec"]["containers"]
        return [arg for arg in container["args"] if arg.startswith("--webhook-host=")]

    report = f"--webhook-host={RELEASE}-report.{NAMESPACE}.svc"
    assert hosts({}) == [f"--webhook-host={RELEASE}-webhook.{NAMESPACE}.svc", report]
    url = {"webhook": {"url": "https://hooks.example.com:8443"}}
    assert hosts(url) == ["--webhook-host=hooks.example.com", report]


def test_the_ca_is_left_to_the_controller_unless_it_is_given() -> None:
    assert all("caBundle" not in hook["clientConfig"] for hook in hooks(render()).values())

    for hook in hooks(render(PROVIDED)).values():
        assert base64.b64decode(hook["clientConfig"]["caBundle"]) == CERTIFICATE.encode()


def test_with_given_certificates_nothing_makes_or_reads_others() -> None:
    manifests = render(PROVIDED)

    [seal] = of_kind(manifests, "Secret")
    assert seal["metadata"]["name"] == f"{RELEASE}-seal"
    named = {
        name
        for role in of_kind(manifests, "Role")
        for rule in role["rules"]
        if "secrets" in rule["resources"]
        for name in rule["resourceNames"]
    }
    assert named == {"mine", f"{RELEASE}-seal"}
    for deployment in of_kind(manifests, "Deployment"):
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        assert not [arg for arg in container["args"] if arg.startswith("--ca-secret")]


def test_gpu_pods_fail_closed_and_quickly() -> None:
    registered = hooks(render())

    for identity in (names.MUTATE_POD, names.MUTATE_EPHEMERAL):
        assert registered[identity]["failurePolicy"] == "Fail"
        assert registered[identity]["reinvocationPolicy"] == "IfNeeded"
    assert registered[names.RESERVE_ROOM]["failurePolicy"] == "Fail"
    for identity, hook in registered.items():
        reserves = identity == names.RESERVE_ROOM
        assert hook["timeoutSeconds"] == 2
        assert hook["sideEffects"] == ("NoneOnDryRun" if reserves else "None")
        assert hook["matchPolicy"] == "Equivalent"


def test_room_is_asked_for_pods_with_the_mark_of_admission_alone() -> None:
    selectors = {name: hook.get("objectSelector") for name, hook in hooks(render()).items()}

    assert selectors.pop(names.RESERVE_ROOM) == {"matchLabels": {names.RESERVE_LABEL: "true"}}
    # An author's own label would keep a pod from any other.
    assert set(selectors.values()) == {None}


@pytest.mark.parametrize(("claims", "policy"), [("Warn", "Ignore"), ("Refuse", "Fail")])
def test_a_refusal_of_claims_fails_closed_and_a_warning_open(claims: str, policy: str) -> None:
    assert hooks(render({"resourceClaims": claims}))[names.CHECK_CLAIMS]["failurePolicy"] == policy


def test_where_no_class_hands_out_gpus_nothing_is_asked_about_claims() -> None:
    without = render({"gpuDeviceClasses": []})

    assert hooks(without).keys() == IDS - {names.CHECK_CLAIMS}
    [left] = of_kind(without, "ValidatingWebhookConfiguration")
    assert [hook["name"] for hook in left["webhooks"]] == ["reserve-room.gpumemory.dev"]
    rules = [rule for role in of_kind(without, "ClusterRole") for rule in role["rules"]]
    assert not [rule for rule in rules if "resource.k8s.io" in rule["apiGroups"]]


def test_ignored_namespaces_never_call() -> None:
    values = {"ignoredNamespaces": ["quiet"]}
    registered = hooks(render(values))
    for identity in IDS - ISOLATING:
        hook = registered[identity]
        assert hook["namespaceSelector"]["matchExpressions"] == [
            {
                "key": "kubernetes.io/metadata.name",
                "operator": "NotIn",
                "values": settings(render(values))["ignoredNamespaces"],
            },
            {"key": names.IGNORE_LABEL, "operator": "NotIn", "values": ["true"]},
        ]


def test_only_isolated_namespaces_call_for_isolation_and_wait_for_nobody() -> None:
    registered = hooks(render({"isolation": {"by": "Webhook"}}))
    for identity in ISOLATING:
        hook = registered[identity]
        assert hook["failurePolicy"] == "Ignore"
        assert hook["timeoutSeconds"] == 2
        assert hook["namespaceSelector"]["matchExpressions"] == [
            {"key": names.ISOLATE_LABEL, "operator": "In", "values": ["true"]}
        ]

    order = [*registered]
    # As with the policy of the API server: what the plan gives to the sidecar stays.
    assert order.index(names.ISOLATE_POD) < order.index(names.MUTATE_POD)

    native = render({"isolation": {"by": "Policy"}})
    assert hooks(native).keys() == IDS - ISOLATING
    assert len(of_kind(native, "MutatingAdmissionPolicy")) == 1


def test_on_the_host_everything_but_the_pods_is_installed() -> None:
    def identities(values: dict[str, Any]) -> set[tuple[str, str]]:
        return {(found["kind"], found["metadata"]["name"]) for found in render(values)}

    uninstall = {
        (kind, f"{RELEASE}-uninstall")
        for kind in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job")
    }
    assert identities({}) - identities(ON_HOST) == uninstall | {
        ("Deployment", f"{RELEASE}-webhook"),
        ("Deployment", f"{RELEASE}-controller"),
        ("Service", f"{RELEASE}-webhook"),
        ("Service", f"{RELEASE}-report"),
        ("PodDisruptionBudget", f"{RELEASE}-webhook"),
    }

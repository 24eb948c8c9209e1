"""The way of a report, as the chart lays it: address, Service, port, certificate."""

from __future__ import annotations

from typing import Any

from builders import CERTIFICATE
from chart_rendering import NAMESPACE, RELEASE, Object, of_kind, render, settings
from gpumem_operator import names
from gpumem_operator.intake.server import REPORTS_PATH

HOST = f"{RELEASE}-report.{NAMESPACE}.svc"
ON_HOST = {"operator": {"deploy": False}, "webhook": {"url": "https://127.0.0.1:9443"}}


def named(manifests: list[Object], kind: str, name: str) -> Object:
    [found] = [one for one in of_kind(manifests, kind) if one["metadata"]["name"] == name]
    return found


def address(values: dict[str, Any]) -> str:
    url: str = settings(render(values))["report"]["url"]
    return url


def test_sidecars_are_told_the_services_name_unless_another_is_given() -> None:
    assert address({}) == f"https://{HOST}{REPORTS_PATH}"
    assert address({"report": {"url": "https://elsewhere"}}) == "https://elsewhere"
    assert address(ON_HOST) == "", "there is no Service to send to"


def test_the_service_selects_the_leaders_pod_alone() -> None:
    manifests = render()
    service = named(manifests, "Service", f"{RELEASE}-report")
    template = named(manifests, "Deployment", f"{RELEASE}-controller")["spec"]["template"]
    selector = dict(service["spec"]["selector"])

    assert selector.pop(names.LEADER_LABEL) == "true"
    assert names.LEADER_LABEL not in template["metadata"]["labels"], "the leader puts it on"
    assert selector == template["metadata"]["labels"]


def test_the_service_leads_to_the_port_of_the_intake() -> None:
    manifests = render()
    [port] = named(manifests, "Service", f"{RELEASE}-report")["spec"]["ports"]
    deployment = named(manifests, "Deployment", f"{RELEASE}-controller")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}

    assert f"--port={ports[port['targetPort']]}" in container["args"]
    assert "--pod=$(POD_NAME)" in container["args"]
    [variable] = [one for one in container["env"] if one["name"] == "POD_NAME"]
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"


def test_a_provided_certificate_is_read_by_the_controller_too() -> None:
    provided = {"mode": "Provided", "secretName": "mine", "caBundle": CERTIFICATE}
    manifests = render({"certificates": provided})
    role = named(manifests, "Role", f"{RELEASE}-controller")
    [_, rule] = [rule for rule in role["rules"] if "secrets" in rule["resources"]]
    deployment = named(manifests, "Deployment", f"{RELEASE}-controller")
    [container] = deployment["spec"]["template"]["spec"]["containers"]

    assert (rule["resourceNames"], rule["verbs"]) == (["mine"], ["get"])
    assert "--cert-secret=mine" in container["args"]

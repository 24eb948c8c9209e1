"""What the documents say of ports, against the pods of the chart and a real API server."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from builders import admitted, pod, policy
from chart_rendering import NAMESPACE, ON_NODES, Object, of_kind, render
from devcluster.installation import Installation

INSTALL = (Path(__file__).parents[2] / "docs" / "install.md").read_text()
INCOMING, OUTGOING = [
    manifest
    for block in re.findall(r"^```yaml\n(.*?)^```", INSTALL, re.MULTILINE | re.DOTALL)
    if (manifest := yaml.safe_load(block)).get("kind") == "NetworkPolicy"
]


def ports_of(pod_spec: Object) -> dict[str, int]:
    return {
        port["name"]: port["containerPort"]
        for container in pod_spec["containers"]
        for port in container["ports"]
    }


def test_the_policy_lets_in_whatever_calls_a_pod_of_the_release() -> None:
    manifests = render({"agent": {"enabled": True}})
    selected = INCOMING["spec"]["podSelector"]["matchLabels"].items()
    [rule] = INCOMING["spec"]["ingress"]
    let_in = {port["port"] for port in rule["ports"]}

    served: set[str] = set()
    for found in of_kind(manifests, "Deployment", "DaemonSet"):
        template = found["spec"]["template"]
        assert selected <= template["metadata"]["labels"].items()
        served |= ports_of(template["spec"]).keys()
    assert let_in == served
    assert INCOMING["metadata"]["namespace"] == NAMESPACE


def test_the_policy_lets_out_the_reports_of_a_pod() -> None:
    stored = admitted(pod(), policy())
    selected = OUTGOING["spec"]["podSelector"]["matchLabels"].items()
    assert selected <= stored["metadata"]["labels"].items()
    [reports, names] = OUTGOING["spec"]["egress"]
    controller = next(
        found["spec"]["template"]["spec"]
        for found in of_kind(render(), "Deployment")
        if "controller" in found["metadata"]["name"]
    )
    assert [port["port"] for port in reports["ports"]] == [ports_of(controller)["reports"]]
    assert [port["port"] for port in names["ports"]] == [53]


def test_the_documents_name_the_ports_of_the_chart() -> None:
    for found in of_kind(render({"agent": {"enabled": True}}), "Deployment", "DaemonSet"):
        for number in ports_of(found["spec"]["template"]["spec"]).values():
            assert re.search(rf"^\|.*\b{number}\b.*\|$", INSTALL, re.MULTILINE)


@pytest.mark.cluster
@pytest.mark.parametrize(
    "manifest",
    [INCOMING, OUTGOING, *of_kind(render(ON_NODES), "Deployment")],
    ids=lambda found: found["metadata"]["name"],
)
def test_the_server_takes_them(bare: Installation, manifest: Object) -> None:
    created = bare.cluster.kubectl(
        "create", "--dry-run=server", "-o", "json", "-f", "-", input=json.dumps(manifest)
    )
    assert json.loads(created.stdout)["kind"] == manifest["kind"]

"""Where each namespace has a user of its own, as by OpenShift's restricted-v2: values are null."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.node import Node
from endtoend.team import Team
from node.release import role_pods, upgraded
from node.workload import (
    MIB,
    complaints_of_the_roles,
    execute,
    holding,
    nvml_everywhere,
    restricted_pod_spec,
    run_pod,
)

pytestmark = pytest.mark.cluster

USER = 1000700000
"""As OpenShift gives them: every namespace has a range that begins at such a number."""
HELD_MIB = 4096
ALL = "(object.spec.containers + object.spec.?initContainers.orValue([]))"


def filled(field: str) -> str:
    """CEL: the containers of this field that have no user, with the one of the namespace."""
    kind = f"Object.spec.{field}"
    return (
        f"object.spec.?{field}.orValue([])"
        ".filter(c, !c.?securityContext.?runAsUser.hasValue())"
        f".map(c, {kind}{{name: c.name, securityContext: "
        f"{kind}.securityContext{{runAsUser: {USER}}}}})"
    )


FIELDS = ", ".join(f"{field}: {filled(field)}" for field in ("containers", "initContainers"))
KINDS: dict[str, dict[str, Any]] = {
    "MutatingAdmissionPolicy": {
        "reinvocationPolicy": "IfNeeded",
        "mutations": [
            {
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {
                    "expression": f"Object{{spec: Object.spec{{{FIELDS}}}}}",
                },
            }
        ],
    },
    "ValidatingAdmissionPolicy": {
        "validations": [
            {
                "expression": f"{ALL}.all(c, c.?securityContext.?runAsUser.orValue(0) == {USER})",
                "message": "must be in the range of the namespace",
            }
        ],
    },
}


def without_user(program: str) -> dict[str, Any]:
    spec = restricted_pod_spec(program, env={"PYTHONPATH": "/library"})
    del spec["securityContext"]["runAsUser"]
    return spec


@pytest.fixture
def own_users(operator_in_pods: Node, team: Team) -> Iterator[Team]:
    """No user in the values; the team's pods get one where they have none, and need it."""
    cluster = operator_in_pods.cluster
    meta = {"name": f"users-{team.name}"}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    constraints: dict[str, Any] = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": team.name}},
        "resourceRules": [{**rule, "resources": ["pods"]}],
    }
    for kind, spec in KINDS.items():
        bound: dict[str, object] = {"policyName": meta["name"]}
        if kind.startswith("Validating"):
            bound["validationActions"] = ["Deny"]
        own = {**spec, "failurePolicy": "Fail", "matchConstraints": constraints}
        for name, body in ((kind, own), (f"{kind}Binding", bound)):
            about = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": name}
            raw = json.dumps({**about, "metadata": meta, "spec": body})
            cluster.kubectl("create", "-f", "-", input=raw)
    spec = without_user("pass")
    del spec["containers"][0]["resources"]
    probe = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "cpu"}, "spec": spec}
    dry = ["create", "--dry-run=server", "-o", "yaml", "-f", "-"]
    team.until(*dry, input=json.dumps(probe), until=f"runAsUser: {USER}")
    with upgraded(cluster, "operator.runAsUser=null,sidecar.runAsUser=null"):
        yield team
    for kind in KINDS:
        cluster.kubectl("delete", f"{kind}Binding,{kind}", meta["name"])


@nvml_everywhere
def test_a_pod_with_a_user_of_its_namespace_is_capped_and_measured(
    operator_in_pods: Node, own_users: Team
) -> None:
    program = f"import torch; {holding(HELD_MIB)}"
    stored = run_pod(own_users, "train", without_user(program))

    ran = [*stored["spec"]["containers"], *stored["spec"]["initContainers"]]
    assert {one["name"] for one in ran} == {"main", "gpumem-shim", "gpumem-sidecar"}
    for one in ran:
        assert one["securityContext"]["runAsUser"] == USER
        assert "runAsGroup" not in one["securityContext"]
    sample = execute(
        own_users, "train", "python", "-m", "gpumem_sidecar", "--once", container="gpumem-sidecar"
    )
    [seen] = json.loads(sample)["processes"]
    assert (seen["container"], seen["bytes"]) == ("main", HELD_MIB * MIB)
    assert [one["name"] for one in seen["shim"]["frameworks"]] == ["torch"]

    for pod in role_pods(operator_in_pods.cluster):
        assert pod["spec"]["securityContext"].keys().isdisjoint({"runAsUser", "fsGroup"})
    assert complaints_of_the_roles(operator_in_pods.cluster) == []

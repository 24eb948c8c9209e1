"""Every way out that was thought of, tried by a tenant with far too many rights."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from chart.actors import CONTROLLER, TENANT, Actor
from devcluster.installation import Installation
from gpumem_operator import names
from patience import PATIENCE_SECONDS

pytestmark = pytest.mark.cluster

SPACE = "research-1"
GATE = {"name": names.QUOTA_GATE}
CONTROL_PLANE = "system:serviceaccount:kube-system:job-controller"


def gpu_pod(name: str, **limits: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    labels = {names.MANAGED_LABEL: "true"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": SPACE, "labels": labels},
        "spec": {"schedulingGates": [GATE, {"name": "mine/gate"}], "containers": [container]},
    }


GPU = {"nvidia.com/gpu": "1"}
RESEARCH = {
    "apiVersion": names.API_VERSION,
    "kind": names.TENANT_KIND,
    "metadata": {"name": "research"},
    "spec": {
        "namespaceSelector": {
            "matchLabels": {"team": "research"},
            "matchExpressions": [
                {"key": "env", "operator": "NotIn", "values": ["sandbox"]},
                {"key": "kubernetes.io/metadata.name", "operator": "Exists"},
            ],
        },
        "quota": {"limit": "160Gi", "wholeGPU": "80Gi"},
    },
}
OTHER = {**RESEARCH, "metadata": {"name": "other"}}
OTHER["spec"] = {"namespaceSelector": {}, "quota": {"limit": "1Gi", "wholeGPU": "1Gi"}}
OVERUSE = {
    "type": names.OVERUSE_CONDITION,
    "status": "True",
    "reason": "OverLimit",
    "lastTransitionTime": "2026-11-30T00:00:00Z",
}
LATER = {**OVERUSE, "lastTransitionTime": "2026-12-01T00:00:00Z"}
WITHIN = {**OVERUSE, "status": "False"}
STATUSES = "gpumemorypolicies/status,gpumemorytenants/status"
KINDS = "gpumemorypolicies,gpumemorytenants"
VERBS = "--verb=get,list,watch,create,update,patch,delete"  # not `manage`
RIGHTS = [
    ["clusterrole", "all-statuses", VERBS, f"--resource={STATUSES},{KINDS}"],
    ["clusterrolebinding", "all-statuses", "--clusterrole=all-statuses", f"--user={TENANT}"],
    ["rolebinding", "edit", "--clusterrole=edit", f"--user={TENANT}", "-n", SPACE],
    ["clusterrolebinding", "runners", "--clusterrole=pod-status", "--group=system:authenticated"],
    ["clusterrolebinding", "readers", "--clusterrole=view", "--group=system:authenticated"],
]


@pytest.fixture(scope="module")
def shared(guarded: Installation) -> Iterator[Installation]:
    """A namespace of a tenant, with pods that admission has let in."""
    kubectl = guarded.cluster.kubectl
    kubectl("create", "namespace", SPACE)
    for right in RIGHTS:
        kubectl("create", *right)
    kubectl("create", "serviceaccount", "default", "-n", SPACE, check=False)
    kubectl("label", "namespace", SPACE, "team=research", f"{names.IGNORE_LABEL}=true")
    plain = gpu_pod("plain")
    pods = (gpu_pod("gated", **GPU), gpu_pod("opened", **GPU), gpu_pod("over", **GPU), plain)
    for found in (*pods, RESEARCH, OTHER):
        kubectl("create", "-f", "-", input=json.dumps(found))
    kubectl(*status("pod/over", {"conditions": [OVERUSE]}))
    kubectl("create", "-n", SPACE, "-f", "-", input=json.dumps({
        "apiVersion": names.API_VERSION, "kind": names.POLICY_KIND,
        "metadata": {"name": "training"}, "spec": {},
    }))  # fmt: skip
    kubectl("label", "namespace", SPACE, f"{names.IGNORE_LABEL}-")
    # The guard of a tenant's labels is in force when the API server has seen the tenant.
    attempt = [*("label", "namespace", SPACE, "team=other", "--overwrite"), "--dry-run=server"]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not Actor(guarded, TENANT).does(*attempt):
        assert time.monotonic() < deadline, "the guard of tenants' labels is not in force"
    yield guarded
    kubectl("delete", "gmt", "research", "other")


def status(path: str, body: object) -> list[str]:
    where = [] if path.startswith("gmt") else ["-n", SPACE]
    patch = json.dumps({"status": body})
    return ["patch", path, *where, "--subresource=status", "--type=merge", "-p", patch]


def patch(body: object, kind: str = "merge") -> list[str]:
    return ["patch", "pod/gated", "-n", SPACE, f"--type={kind}", "-p", json.dumps(body)]


NAMESPACE = ["label", "namespace", SPACE, "--overwrite"]
LABEL_STATUS = json.dumps({"metadata": {"labels": {"team": "other"}}})
ANNOTATE = ["annotate", "pod/gated", "-n", SPACE, "--overwrite"]
REMOVE_GATE = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
REPLACE_GATES = [
    {"op": "replace", "path": "/spec/schedulingGates", "value": [{"name": "mine/gate"}]}
]
ATTEMPTS = {
    "leaves the tenant": ([*NAMESPACE, "team=other"], "tenant research among them"),
    "removes the tenant's label": ([*NAMESPACE, "team-"], "tenant research among them"),
    "becomes what the tenant leaves out": (
        [*NAMESPACE, "env=sandbox"],
        "tenant research among them",
    ),
    "leaves by the namespace's status": (
        ["patch", "namespace", SPACE, "--subresource=status", "--type=merge", "-p", LABEL_STATUS],
        "tenant research among them",
    ),
    "is ignored": ([*NAMESPACE, f"{names.IGNORE_LABEL}=true"], "may not change"),
    "opens its gate": (patch(REMOVE_GATE, "json"), "it keeps the pod until"),
    "opens all gates": (patch({"spec": {"schedulingGates": None}}), "it keeps the pod until"),
    "replaces the gates": (patch(REPLACE_GATES, "json"), "it keeps the pod until"),
    "has succeeded": (status("pod/gated", {"phase": "Succeeded"}), "while it may run"),
    "has failed": (status("pod/gated", {"phase": "Failed"}), "while it may run"),
    "is over its limit since later": (
        status("pod/over", {"conditions": [LATER]}),
        "since when the pod is over",
    ),
    "is over its limit no more": (status("pod/over", {"conditions": []}), "since when the pod is"),
    "never was": (status("pod/gated", {"conditions": [WITHIN]}), "since when the pod is over"),
    "declares another limit": ([*ANNOTATE, "gpumemory.dev/limit=1Gi"], "changed by the GPU"),
    "joins a group": ([*ANNOTATE, "gpumemory.dev/group-size=9"], "changed by the GPU"),
    "loses its label": (
        ["label", "pod/gated", "-n", SPACE, f"{names.MANAGED_LABEL}-"],
        "changed by the GPU",
    ),
    "writes its policy's status": (
        status("gmp/training", {"observedGeneration": 1}),
        "may not write the status",
    ),
    "writes what it is charged": (
        status("gmt/research", {"chargedBytes": 0}),
        "may not write the status",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("attempt", "complaint"), ATTEMPTS.values(), ids=ATTEMPTS)
def test_a_tenant(shared: Installation, attempt: list[str], complaint: str) -> None:
    answer = Actor(shared, TENANT).does(*attempt)

    assert "ValidatingAdmissionPolicy" in answer, answer
    assert complaint in answer.replace("GPUMemoryTenant", "tenant")
    assert "Next step" in answer


@pytest.mark.parametrize(
    ("label", "complaint"),
    [
        pytest.param({"team": "other"}, "GPUMemoryTenant research among them", id="the tenant's"),
        pytest.param({names.IGNORE_LABEL: "true"}, "may not change", id="ours"),
    ],
)
def test_no_label_changes_by_way_of_finalizers(
    shared: Installation, label: dict[str, str], complaint: str
) -> None:
    stored = json.loads(shared.cluster.kubectl("get", "namespace", SPACE, "-o", "json").stdout)
    stored["metadata"]["labels"] |= label
    path = f"/api/v1/namespaces/{SPACE}/finalize"

    answer = Actor(shared, TENANT).does("replace", "--raw", path, "-f", "-", input=stored)

    assert complaint in answer


def test_nobody_founds_a_namespace_at_another_tenants_expense(shared: Installation) -> None:
    tenant = Actor(shared, TENANT)
    new = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "research-2"}}
    labelled = {**new, "metadata": {"name": "research-2", "labels": {"team": "research"}}}

    assert "may not change team of namespace research-2" in tenant.does(
        *("create", "-f", "-"), input=labelled
    )
    assert tenant.does("create", "-f", "-", input=new) == ""
    assert tenant.does("delete", "namespace", "research-2", "--wait=false") == ""


def test_everything_else_stays_as_it_was(shared: Installation) -> None:
    tenant = Actor(shared, TENANT)
    condition = {"conditions": [{"type": "example.com/Mine", "status": "True"}]}

    assert tenant.does(*NAMESPACE, "cost-center=7") == ""
    assert tenant.does(*status("pod/gated", condition)) == ""
    both = {"conditions": [OVERUSE, *condition["conditions"]]}
    assert tenant.does(*status("pod/over", both)) == ""
    assert tenant.does(*status("pod/plain", {"phase": "Succeeded"})) == ""
    other_gate = [{"op": "remove", "path": "/spec/schedulingGates/1"}]
    assert tenant.does(*patch(other_gate, "json")) == ""
    assert tenant.does(*ANNOTATE, "note=mine") == ""


def test_those_who_run_pods_say_when_they_end(shared: Installation, platform: Actor) -> None:
    opened = status("pod/opened", {"phase": "Succeeded"})
    dry_run = [*opened, "--dry-run=server"]

    assert Actor(shared, "system:kube-controller-manager").does(*dry_run) == ""
    assert Actor(shared, "kubelet").does(*dry_run, "--as-group=system:nodes", *AUTHENTICATED) == ""
    groups = ["--as-group=system:serviceaccounts:kube-system", *AUTHENTICATED]
    assert Actor(shared, CONTROL_PLANE).does(*dry_run, *groups) == ""
    assert "may not say" in Actor(shared, "kubelet").does(*dry_run, *AUTHENTICATED)
    assert platform.does(*NAMESPACE, "team=other", "--dry-run=server") == ""


AUTHENTICATED = ["--as-group=system:authenticated"]


def test_the_operator_and_kubelets_write_about_overuse(
    shared: Installation, controller: Actor
) -> None:
    later = [*status("pod/over", {"conditions": [LATER]}), "--dry-run=server"]

    assert controller.does(*later) == ""
    assert Actor(shared, "kubelet").does(*later, "--as-group=system:nodes", *AUTHENTICATED) == ""


def test_who_else_runs_pods_is_a_value_of_the_chart(shared: Installation) -> None:
    dry_run = [*status("pod/opened", {"phase": "Failed"}), "--dry-run=server"]
    virtual = ["--as-group=virtual-kubelets", *AUTHENTICATED]
    assert "may not say" in Actor(shared, "virtual").does(*dry_run, *virtual)

    shared.upgrade({"guard": {"podRunnerGroups": ["virtual-kubelets"]}})
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while Actor(shared, "virtual").does(*dry_run, *virtual):
            assert time.monotonic() < deadline, "the group is still refused"
    finally:
        shared.upgrade({"guard": {"podRunnerGroups": []}})


def test_the_operator_opens_gates_and_keeps_statuses(
    shared: Installation, controller: Actor
) -> None:
    kubectl = shared.cluster.kubectl
    bindings = {"c-edit": "edit", "c-statuses": "all-statuses"}
    for name, role in bindings.items():
        kubectl(
            "create", "clusterrolebinding", name, f"--clusterrole={role}", f"--user={CONTROLLER}"
        )
    try:
        assert controller.does(*patch(REMOVE_GATE, "json"), "--dry-run=server") == ""
        assert controller.does(*status("gmt/research", {"chargedBytes": 1})) == ""
    finally:
        kubectl("delete", "clusterrolebinding", *bindings)


def test_without_the_definition_of_tenants_namespaces_go_on(shared: Installation) -> None:
    guard = "validatingadmissionpolicy/gpu-memory-operator-tenant-namespaces"
    found = shared.cluster.kubectl("get", guard, "-o", "jsonpath={.spec.failurePolicy}").stdout

    assert found == "Ignore"  # with Fail, none could be created, changed or deleted then

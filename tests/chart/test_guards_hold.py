"""What RBAC can not say: who writes policies, and who changes our labels."""

from __future__ import annotations

import json
import time

import pytest

from devcluster.installation import Installation
from gpumem_operator import names

pytestmark = pytest.mark.cluster

TENANT = "tenant@example.com"
PLATFORM = "platform@example.com"
CONTROLLER = "system:serviceaccount:gpumem-system:gpu-memory-operator-controller"
WEBHOOK = "system:serviceaccount:gpumem-system:gpu-memory-operator-webhook"

POLICY = {
    "apiVersion": names.API_VERSION,
    "kind": names.POLICY_KIND,
    "metadata": {"name": "mine"},
    "spec": {"limits": {"default": "8Gi"}},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "trained",
        "labels": {names.MANAGED_LABEL: "true", names.POLICY_LABEL: "p", "app": "a"},
        "annotations": {names.POLICY_HASH_ANNOTATION: "1"},
    },
    "spec": {"containers": [{"name": "main", "image": "none"}]},
}
BARE_POD = {**POD, "metadata": {"name": "plain"}}
RIGHTS = [
    # A tenant has everything in its namespace, and the platform's own role there as well.
    ["rolebinding", "edit", "--clusterrole=edit", f"--user={TENANT}", "-n", "tenant"],
    [
        *("rolebinding", "policies", "--clusterrole=gpu-memory-operator-platform"),
        *(f"--user={TENANT}", "-n", "tenant"),
    ],
    ["clusterrole", "namespaces", "--verb=*", "--resource=namespaces,namespaces/status"],
    ["clusterrole", "pod-status", "--verb=*", "--resource=pods/status,pods/binding"],
    ["clusterrolebinding", "namespaces", "--clusterrole=namespaces", f"--user={TENANT}"],
    ["clusterrolebinding", "pod-status", "--clusterrole=pod-status", f"--user={TENANT}"],
    ["clusterrolebinding", "webhook-pods", "--clusterrole=edit", f"--user={WEBHOOK}"],
    [
        *("clusterrolebinding", "platform", "--clusterrole=gpu-memory-operator-platform"),
        f"--user={PLATFORM}",
    ],
    ["clusterrolebinding", "platform-ns", "--clusterrole=namespaces", f"--user={PLATFORM}"],
]


class Actor:
    """Somebody who acts on the cluster, with rights of their own."""

    def __init__(self, installation: Installation, user: str) -> None:
        self._kubectl = installation.cluster.kubectl
        self._user = user

    def does(self, *arguments: str, input: object = None) -> str:
        """The complaint of the API server; empty where it did as it was told."""
        text = None if input is None else json.dumps(input)
        result = self._kubectl(*arguments, f"--as={self._user}", input=text, check=False)
        return "" if result.returncode == 0 else result.stderr


@pytest.fixture(scope="module")
def guarded(bare: Installation) -> Installation:
    kubectl = bare.cluster.kubectl
    kubectl("create", "namespace", "tenant")
    for right in RIGHTS:
        kubectl("create", *right)
    kubectl("create", "serviceaccount", "default", "-n", "tenant", check=False)
    for pod in (POD, BARE_POD):
        kubectl("create", "-n", "tenant", "-f", "-", input=json.dumps(pod))
    # Guards are in force about a second after they were made; this one stands for all.
    deadline = time.monotonic() + 30
    dry_run = ["create", "-n", "tenant", "--dry-run=server", "-f", "-"]
    while not Actor(bare, TENANT).does(*dry_run, input=POLICY):
        assert time.monotonic() < deadline, "the guards are not in force"
    return bare


@pytest.fixture
def tenant(guarded: Installation) -> Actor:
    return Actor(guarded, TENANT)


@pytest.fixture
def platform(guarded: Installation) -> Actor:
    return Actor(guarded, PLATFORM)


@pytest.fixture
def controller(guarded: Installation) -> Actor:
    return Actor(guarded, CONTROLLER)


# Policies


def test_a_role_in_one_namespace_is_not_enough_to_write_policies(tenant: Actor) -> None:
    complaint = tenant.does("create", "-n", "tenant", "-f", "-", input=POLICY)

    assert f"user {TENANT} may not write GPUMemoryPolicies" in complaint
    assert "the verb manage" in complaint
    assert "ClusterRole gpu-memory-operator-platform" in complaint
    assert "system:masters" in complaint


def test_the_platform_writes_policies_anywhere(platform: Actor, tenant: Actor) -> None:
    assert platform.does("create", "-n", "tenant", "-f", "-", input=POLICY) == ""
    change = ["-n", "tenant", "--type=merge", "-p", '{"spec":{"priority":1}}']

    assert "may not write" in tenant.does("patch", "gmp", "mine", *change)
    assert "may not write" in tenant.does("delete", "gmp", "mine", "-n", "tenant")
    assert platform.does("patch", "gmp", "mine", *change) == ""
    assert platform.does("delete", "gmp", "mine", "-n", "tenant") == ""


def test_a_namespace_takes_its_policies_along(guarded: Installation) -> None:
    kubectl = guarded.cluster.kubectl
    kubectl("create", "namespace", "doomed")
    kubectl("create", "-n", "doomed", "-f", "-", input=json.dumps(POLICY))

    kubectl("delete", "namespace", "doomed", "--timeout=60s")


# Pods

LABEL_POD = ["label", "pod", "trained", "-n", "tenant", "--overwrite"]
ANNOTATE_POD = ["annotate", "pod", "trained", "-n", "tenant", "--overwrite"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param([*LABEL_POD, f"{names.MANAGED_LABEL}=false"], id="changes managed"),
        pytest.param([*LABEL_POD, f"{names.MANAGED_LABEL}-"], id="removes managed"),
        pytest.param([*LABEL_POD, f"{names.POLICY_LABEL}=other"], id="changes policy"),
        pytest.param([*LABEL_POD, "--all", f"{names.MANAGED_LABEL}=true"], id="adds managed"),
        pytest.param([*ANNOTATE_POD, f"{names.POLICY_HASH_ANNOTATION}=2"], id="changes the hash"),
        pytest.param([*ANNOTATE_POD, f"{names.POLICY_HASH_ANNOTATION}-"], id="removes the hash"),
    ],
)
def test_a_tenant_may_not_touch_what_admission_wrote(tenant: Actor, change: list[str]) -> None:
    if "--all" in change:
        change = ["plain" if word == "trained" else word for word in change if word != "--all"]

    complaint = tenant.does(*change)

    assert "may be changed by the GPU memory operator only" in complaint
    assert "of pod tenant/" in complaint


def test_nor_by_way_of_the_status(tenant: Actor) -> None:
    patch = json.dumps({"metadata": {"labels": {names.MANAGED_LABEL: "false"}}})

    complaint = tenant.does(
        *("patch", "pod", "trained", "-n", "tenant", "--subresource=status", "-p", patch)
    )

    assert names.MANAGED_LABEL in complaint


def test_nor_by_way_of_a_binding(tenant: Actor) -> None:
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "trained", "annotations": {names.POLICY_HASH_ANNOTATION: "2"}},
        "target": {"kind": "Node", "name": "somewhere"},
    }

    for path in ("pods/trained/binding", "bindings"):
        raw = f"/api/v1/namespaces/tenant/{path}"
        complaint = tenant.does("create", "--raw", raw, "-f", "-", input=binding)
        assert names.POLICY_HASH_ANNOTATION in complaint or "cannot create" in complaint
        if path != "bindings":
            assert "operator only" in complaint


def test_everything_else_of_a_pod_is_the_tenants(tenant: Actor) -> None:
    assert tenant.does(*LABEL_POD, "app=b") == ""
    assert tenant.does(*ANNOTATE_POD, "note=mine", f"{names.SUMMARY_ANNOTATION}=mine") == ""
    for pod in ("trained", "plain"):
        condition = '{"status":{"conditions":[{"type":"example.com/Mine","status":"True"}]}}'
        where = ["-n", "tenant", "--subresource=status", "-p", condition]
        assert tenant.does("patch", "pod", pod, *where) == ""


def test_a_scheduler_binds_pods_as_ever(tenant: Actor, guarded: Installation) -> None:
    pod = {**POD, "metadata": {**POD["metadata"], "name": "bound"}}  # type: ignore[dict-item]
    pod = {**pod, "spec": {"schedulerName": "mine", **POD["spec"]}}  # type: ignore[dict-item]
    guarded.cluster.kubectl("create", "-n", "tenant", "-f", "-", input=json.dumps(pod))
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "bound"},
        "target": {"kind": "Node", "name": "somewhere"},
    }
    raw = "/api/v1/namespaces/tenant/pods/bound/binding"

    assert tenant.does("create", "--raw", raw, "-f", "-", input=binding) == ""


def test_the_controller_puts_labels_back(controller: Actor) -> None:
    assert controller.does(*LABEL_POD, f"{names.MANAGED_LABEL}=false") == ""
    assert controller.does(*LABEL_POD, f"{names.MANAGED_LABEL}=true") == ""


def test_the_webhooks_account_is_no_exception(guarded: Installation) -> None:
    assert "operator only" in Actor(guarded, WEBHOOK).does(
        *LABEL_POD, f"{names.MANAGED_LABEL}=false"
    )


# Namespaces


def test_switching_admission_off_takes_the_right_to_manage(tenant: Actor, platform: Actor) -> None:
    off = ["label", "namespace", "tenant", f"{names.IGNORE_LABEL}=true"]
    on = ["label", "namespace", "tenant", f"{names.IGNORE_LABEL}-"]

    assert f"may not change {names.IGNORE_LABEL} of namespace tenant" in tenant.does(*off)
    assert platform.does(*off) == ""
    assert "may not change" in tenant.does(*on)
    assert "may not change" in tenant.does(
        "label", "namespace", "tenant", f"{names.IGNORE_LABEL}=false", "--overwrite"
    )
    assert tenant.does("label", "namespace", "tenant", "team=research") == ""
    assert platform.does(*on) == ""


def test_nor_may_the_status_of_a_namespace_or_a_new_one_carry_the_label(tenant: Actor) -> None:
    labels = {"metadata": {"labels": {names.ISOLATE_LABEL: "false"}}}
    patch = ["--subresource=status", "--type=merge", "-p", json.dumps(labels)]
    new = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}

    assert "may not change" in tenant.does("patch", "namespace", "tenant", *patch)
    labelled = {**new, "metadata": {"name": "new", **labels["metadata"]}}
    assert "may not change" in tenant.does("create", "-f", "-", input=labelled)
    assert tenant.does("create", "-f", "-", input=new) == ""


# Break-glass


def test_cluster_owners_are_never_locked_out(guarded: Installation) -> None:
    kubectl = guarded.cluster.kubectl

    kubectl(*LABEL_POD, f"{names.MANAGED_LABEL}=false")
    kubectl(*LABEL_POD, f"{names.MANAGED_LABEL}=true")


def test_another_break_glass_group_takes_the_place_of_the_default(guarded: Installation) -> None:
    def passes(group: str) -> bool:
        change = [*LABEL_POD, f"{names.MANAGED_LABEL}=false", "--dry-run=server"]
        result = guarded.cluster.kubectl(
            *change,
            f"--as={TENANT}",
            f"--as-group={group}",
            "--as-group=system:masters",
            check=False,
        )
        return result.returncode == 0

    assert passes("firefighters")
    guarded.upgrade({"guard": {"breakGlassGroups": ["firefighters"]}})
    try:
        deadline = time.monotonic() + 30
        while passes("others"):
            assert time.monotonic() < deadline, "system:masters is still exempt"
        assert passes("firefighters")
    finally:
        guarded.upgrade({"guard": {"breakGlassGroups": ["system:masters"]}})

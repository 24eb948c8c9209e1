"""What RBAC can not say: who writes policies, and who changes our labels."""

from __future__ import annotations

import json
import time

import pytest

from chart.actors import POD, POLICY, TENANT, WEBHOOK, Actor
from devcluster.installation import Installation
from gpumem_operator import names
from patience import PATIENCE_SECONDS, WAIT

pytestmark = pytest.mark.cluster

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

    kubectl("delete", "namespace", "doomed", WAIT)


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
        assert names.POLICY_HASH_ANNOTATION in complaint
        assert "operator only" in complaint


def test_everything_else_of_a_pod_is_the_tenants(tenant: Actor) -> None:
    assert tenant.does(*LABEL_POD, "app=b") == ""
    assert tenant.does(*ANNOTATE_POD, "note=mine") == ""
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
        deadline = time.monotonic() + PATIENCE_SECONDS
        while passes("others"):
            assert time.monotonic() < deadline, "system:masters is still exempt"
        assert passes("firefighters")
    finally:
        guarded.upgrade({"guard": {"breakGlassGroups": ["system:masters"]}})

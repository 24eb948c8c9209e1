"""Statuses of policies and tenants, and labels of pods, as the controller writes them."""

from typing import Any

import pytest

from controllers.cluster_view import View
from controllers.stored import managed_pod, node, pod, policy, tenant
from devcluster.installation import Installation
from gpumem_operator.api.quantity import GIB
from gpumem_operator.api.records import policy_record

pytestmark = pytest.mark.cluster
SPEC: dict[str, Any] = {"limits": {"default": "8Gi"}}


def fingerprint(namespace: str) -> str:
    spec = policy_record(policy(namespace=namespace, **SPEC)).spec
    assert spec is not None
    return spec.pod_fingerprint


def test_a_policy_counts_managed_outdated_and_unmanaged_pods(view: View, namespace: str) -> None:
    here: dict[str, Any] = {"policy": "training", "namespace": namespace, "limit_bytes": 8 * GIB}
    view.create(
        policy(namespace=namespace, **SPEC),
        managed_pod("fresh", fingerprint=fingerprint(namespace), **here),
        managed_pod("stale", fingerprint="before", gpus=2, **here),
        pod("slipped", namespace=namespace),
        pod("cpu-only", namespace=namespace, gpus=None),
    )
    view.admit(namespace)
    what = "gpumemorypolicy/training"
    view.wait(what, ".status.pods.unmanaged", "1", namespace)
    view.wait(what, ".status.pods.managed", "2", namespace)
    status = view.get("gpumemorypolicy", "training", namespace)["status"]
    assert status["pods"] == {"managed": 2, "outdated": 1, "unmanaged": 1}
    # None of them has started, so nothing is held, and nothing is unknown.
    assert status["memory"] == {
        "declaredBytes": 24 * GIB,
        "usedBytes": 0,
        "unknownPods": 0,
        "readable": {"declared": "24Gi", "used": "0"},
    }
    assert status["observedGeneration"] == 1
    assert view.get("pod", "slipped", namespace)["metadata"]["labels"] == {
        "gpumemory.dev/managed": "false"
    }
    assert "labels" not in view.get("pod", "cpu-only", namespace)["metadata"]

    view.patch(what, {"spec": {"limits": {"default": "9Gi"}}}, namespace=namespace)
    view.wait(what, ".status.pods.outdated", "2", namespace)
    assert view.get("gpumemorypolicy", "training", namespace)["status"]["observedGeneration"] == 2
    view.cluster.kubectl("delete", "pod", "stale", "-n", namespace, "--force", "--grace-period=0")
    view.wait(what, ".status.pods.managed", "1", namespace)
    view.wait(what, ".status.memory.declaredBytes", str(8 * GIB), namespace)


def test_a_tenant_is_charged_for_the_pods_of_its_namespaces(view: View, namespace: str) -> None:
    selector = {"matchLabels": {"team": namespace}}
    view.create(
        tenant(namespace, limit="100Gi", whole="80Gi", selector=selector),
        managed_pod("declared", policy="", namespace=namespace, memory="10Gi", source="Resource"),
        pod("whole", namespace=namespace),
        managed_pod(
            "gated",
            policy="",
            namespace=namespace,
            memory="101Gi",
            source="Resource",
            gates=("gpumemory.dev/quota",),
        ),
    )
    view.admit(namespace)
    what = f"gpumemorytenant/{namespace}"
    view.wait(what, ".status.chargedBytes", str(90 * GIB))
    view.wait(what, ".status.readable.charged", "90Gi")
    status = view.get("gpumemorytenant", namespace)["status"]
    assert [(row["name"], row["chargedBytes"]) for row in status["topPods"]] == [
        ("whole", 80 * GIB),
        ("declared", 10 * GIB),
    ]
    assert [row["name"] for row in status["queue"]] == ["gated"]
    assert status["queue"][0]["reason"] == "LargerThanQuota"
    view.wait(what, '.status.conditions[?(@.type=="WithinQuota")].status', "True")

    view.patch(what, {"spec": {"quota": {"limit": "50Gi"}}})
    view.wait(what, '.status.conditions[?(@.type=="WithinQuota")].reason', "QuotaExceeded")
    view.end("whole", "Failed", namespace)
    view.wait(what, ".status.chargedBytes", str(10 * GIB))
    view.wait(what, '.status.conditions[?(@.type=="WithinQuota")].status', "True")
    view.cluster.kubectl("delete", "gpumemorytenant", namespace)


def test_a_tenant_says_so_while_it_selects_no_namespace(view: View, namespace: str) -> None:
    view.create(tenant(namespace, selector={"matchLabels": {"typo": namespace}}))
    ready = '.status.conditions[?(@.type=="Ready")].reason'
    view.wait(f"gpumemorytenant/{namespace}", ready, "NoNamespaces")
    view.cluster.kubectl("label", "namespace", namespace, f"typo={namespace}")
    view.wait(f"gpumemorytenant/{namespace}", ready, "Applied")
    view.cluster.kubectl("delete", "gpumemorytenant", namespace)


def test_a_policy_that_asks_for_what_no_node_has_says_so(view: View, namespace: str) -> None:
    asks: dict[str, Any] = {"enforcement": {"minimumEnforcer": "MPS"}}
    gpu_node = node(namespace, memory="81920") | {"spec": {}}
    view.create(policy("strict", namespace=namespace, **asks), gpu_node)
    unavailable = '.status.conditions[?(@.type=="MinimumEnforcerUnavailable")].status'
    view.wait("gpumemorypolicy/strict", unavailable, "True", namespace)
    view.cluster.kubectl("label", "node", namespace, "nvidia.com/gpu.sharing-strategy=mps")
    view.wait("gpumemorypolicy/strict", unavailable, "False", namespace)
    view.cluster.kubectl("delete", "node", namespace)


def test_a_policy_that_never_wins_says_so(view: View, namespace: str) -> None:
    view.create(policy("weak", namespace=namespace))
    shadowed = '.status.conditions[?(@.type=="Shadowed")].status'
    view.wait("gpumemorypolicy/weak", shadowed, "False", namespace)
    view.create(policy("strong", namespace=namespace, priority=1))
    view.wait("gpumemorypolicy/weak", shadowed, "True", namespace)
    view.cluster.kubectl("delete", "gpumemorypolicy", "strong", "-n", namespace)
    view.wait("gpumemorypolicy/weak", shadowed, "False", namespace)


def test_old_pods_are_labelled_when_their_namespace_gets_a_policy(
    view: View, namespace: str
) -> None:
    view.create(pod("old", namespace=namespace), pod("done", namespace=namespace))
    view.end("done", "Succeeded", namespace)
    view.admit(namespace)
    view.create(policy(namespace=namespace))
    view.wait_for_label("old", "false", namespace)
    view.wait_for_label("done", "false", namespace)
    # Finished pods have their label, and count for nothing.
    view.wait("gpumemorypolicy/training", ".status.pods.unmanaged", "1", namespace)


def test_pods_of_a_namespace_that_admission_leaves_out_are_left_alone(
    view: View, namespace: str
) -> None:
    view.create(pod("ignored", namespace=namespace), policy(namespace=namespace))
    view.wait("gpumemorypolicy/training", ".status.observedGeneration", "1", namespace)
    other = f"{namespace}-next"
    view.cluster.kubectl("create", "namespace", other)
    view.cluster.kubectl("label", "namespace", other, "gpumemory.dev/ignore=true")
    view.create(pod("marker", namespace=other), policy(namespace=other))
    # The marker is labelled by a sweep that went over the ignored pod as well.
    view.admit(other)
    view.wait_for_label("marker", "false", other)
    assert "labels" not in view.get("pod", "ignored", namespace)["metadata"]
    view.cluster.kubectl("delete", "namespace", other, "--wait=false")


def test_a_label_that_somebody_took_or_changed_is_put_back(view: View, namespace: str) -> None:
    view.create(
        managed_pod("kept", policy="training", namespace=namespace), policy(namespace=namespace)
    )
    view.admit(namespace)
    view.wait("gpumemorypolicy/training", ".status.pods.managed", "1", namespace)
    view.cluster.kubectl("label", "pod", "kept", "gpumemory.dev/managed-", "-n", namespace)
    view.wait_for_label("kept", "true", namespace)
    view.cluster.kubectl(
        "label", "pod", "kept", "gpumemory.dev/managed=false", "--overwrite", "-n", namespace
    )
    view.wait_for_label("kept", "true", namespace)
    view.wait("gpumemorypolicy/training", ".status.pods.managed", "1", namespace)


def test_a_status_that_is_right_is_not_written_again(
    controllers: Installation, view: View, namespace: str
) -> None:
    view.create(policy("first", namespace=namespace))
    view.wait("gpumemorypolicy/first", ".status.observedGeneration", "1", namespace)
    before = view.get("gpumemorypolicy", "first", namespace)["metadata"]["resourceVersion"]
    controllers.stop_controller()
    controllers.start_controller()
    # The status of a weaker policy is computed together with that of the first.
    view.create(policy("second", namespace=namespace, priority=-1))
    view.wait("gpumemorypolicy/second", ".status.observedGeneration", "1", namespace)
    after = view.get("gpumemorypolicy", "first", namespace)["metadata"]["resourceVersion"]
    assert after == before


def test_the_controller_goes_on_after_a_restart_of_the_api_server(
    controllers: Installation, view: View, namespace: str
) -> None:
    pids = controllers.controller_pids
    controllers.cluster.restart_apiserver()
    view.create(policy(namespace=namespace), pod("late", namespace=namespace))
    view.admit(namespace)
    view.wait("gpumemorypolicy/training", ".status.pods.unmanaged", "1", namespace)
    assert controllers.controller_pids == pids


def test_nothing_of_ours_or_kopfs_keeps_objects_from_being_deleted(view: View) -> None:
    kinds = "gpumemorypolicies,gpumemorytenants,pods,nodes,namespaces"
    found = view.everything(kinds)
    assert found
    for one in found:
        metadata = one["metadata"]
        assert "finalizers" not in metadata
        assert not [key for key in metadata.get("annotations") or {} if "kopf" in key]

"""Targets that can or must not be scaled: a condition with the next step, and no change."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scaling.fleet import Fleet
from scaling.foreign_kinds import define

pytestmark = pytest.mark.cluster
Fleets = Callable[..., Fleet]


def test_a_workload_that_an_autoscaler_of_the_cluster_has(fleet: Fleets) -> None:
    found = fleet()
    found.load_gib = 40
    found.deploy(1)
    found.kubectl("autoscale", "deployment", "serve", "--min=1", "--max=2", "--cpu=80%")
    # It may have grown before it was found.
    found.runs_until(lambda: found.told().get("reason") == "OtherScaler")
    message = found.refused("OtherScaler")
    assert "HorizontalPodAutoscaler serve has the same target, Deployment serve" in message
    warned = found.until(
        lambda: [one for one in found.events("GPUMemoryPolicy") if one["reason"] == "OtherScaler"]
    )
    assert warned[0]["type"] == "Warning"

    found.kubectl("delete", "hpa", "serve")
    found.runs_until(lambda: found.active() == ("True", "TargetsFollow"))


def test_a_workload_that_keda_has(fleet: Fleets) -> None:
    found = fleet()
    anything = {"x-kubernetes-preserve-unknown-fields": True}
    define(found.cluster, group="keda.sh", version="v1alpha1", kind="ScaledObject", schema=anything)
    found.create(
        {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "metadata": {"name": "by-queue", "namespace": found.namespace},
            # As KEDA reads it, the kind is a Deployment where none is written.
            "spec": {"scaleTargetRef": {"name": "serve"}, "triggers": []},
        }
    )
    found.load_gib = 40
    found.deploy(1)
    assert "ScaledObject by-queue has the same target" in found.refused("OtherScaler")


def test_a_target_that_is_not_there(fleet: Fleets) -> None:
    found = fleet(targetRef={"kind": "Deployment", "name": "missing"})
    found.until(lambda: found.active() == ("False", "TargetNotFound"))
    assert found.told()["message"] == (
        f"Deployment {found.namespace}/missing does not exist: create it, or correct targetRef."
    )


def test_kinds_that_have_no_scale_and_kinds_that_nobody_knows(fleet: Fleets) -> None:
    found = fleet(targetRef={"kind": "DaemonSet", "name": "serve"})
    found.until(lambda: found.active() == ("False", "NotScalable"))
    assert "DaemonSet in apps/v1 has no scale subresource" in found.told()["message"]

    found = fleet(targetRef={"apiVersion": "no.example/v1", "kind": "Thing", "name": "serve"})
    found.until(lambda: found.active() == ("False", "NotScalable"))
    assert "knows no kind Thing in namespaces, in no.example/v1" in found.told()["message"]


def test_a_kind_that_the_operator_may_not_scale(fleet: Fleets) -> None:
    found = fleet(targetRef={"kind": "ReplicaSet", "name": "serve"})
    found.until(lambda: found.active() == ("False", "NotAllowed"))
    assert "list its kind in the chart's value scaling.targets" in found.told()["message"]


def test_pods_that_belong_to_another_policy(fleet: Fleets) -> None:
    found = fleet()
    # Young as it is, it decides for the pods of the namespace.
    found.policy("other", priority=10)
    found.load_gib = 40
    found.until(lambda: "other" in found.kubectl("get", "gmp", "-o", "name"))
    found.deploy(2)
    if "belongs to policy other" not in found.refused("OtherPolicyOwnsPods"):
        raise AssertionError(found.told())


def test_two_policies_with_one_target(fleet: Fleets) -> None:
    found = fleet(maxReplicas=1)
    found.load_gib = 8
    found.deploy(1)
    # It would decide for pods that are created from now on; those that are there keep theirs.
    found.policy("second", priority=10, scaling=[found.entry()])
    found.runs_until(lambda: found.told("second").get("reason") == "OtherPolicyScales")
    assert "belongs to policy training. Delete one of" in found.told("second")["message"]
    found.runs_until(lambda: found.told().get("reason") == "OnTarget")


def test_pods_that_say_nothing(fleet: Fleets) -> None:
    found = fleet()
    found.silent = True
    found.deploy(2)
    assert "2 of 2 started pods the metric is not known (2 NoReport)" in found.refused(
        "TooManyUnknown"
    )


def test_a_server_that_preallocates(fleet: Fleets) -> None:
    found = fleet()
    found.load_gib = 40
    found.deploy(2, image="registry.example/vllm-openai:v1")
    message = found.refused("Preallocates")
    assert "2 of its pods hold memory whether they are busy or not" in message
    assert "vLLM" in message


def test_a_workload_that_somebody_switched_off(fleet: Fleets) -> None:
    found = fleet(minReplicas=2)
    found.deploy(0)
    assert "Somebody set it to 0 replicas" in found.refused("ScaledToZero")

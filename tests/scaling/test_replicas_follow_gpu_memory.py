"""Real Deployments on a real API server: what pods hold changes, and then so do replicas."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable

import pytest

from devcluster.installation import Installation
from scaling.fleet import Fleet
from scaling.foreign_kinds import define

pytestmark = pytest.mark.cluster
Fleets = Callable[..., Fleet]


def test_a_deployment_grows_and_shrinks_with_what_its_pods_hold(fleet: Fleets) -> None:
    found = fleet()
    found.load_gib = 16
    found.deploy(2)
    found.runs_until(lambda: found.told().get("currentPercent") == 80)
    assert found.told()["reason"] == "OnTarget"
    assert found.active() == ("True", "TargetsFollow")

    found.load_gib = 30
    found.runs_until(lambda: found.replicas() == 4 and found.told().get("currentPercent") == 75)
    assert found.told()["changes"][-1]["toReplicas"] == 4
    assert "% of their limits" in found.told()["changes"][-1]["message"]

    found.load_gib = 8
    found.runs_until(lambda: found.replicas() == 1)
    reasons = [one["reason"] for one in found.events("Deployment")]
    assert {"ScaledUp", "ScaledDown"} <= set(reasons)
    grown = next(
        one["message"] for one in found.events("Deployment") if one["reason"] == "ScaledUp"
    )
    assert "80% is wanted" in grown
    assert "(policy training)" in grown


def test_a_stateful_set_is_scaled_as_well(fleet: Fleets) -> None:
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "serve"}
    found = fleet(targetRef=reference, minReplicas=2)
    found.load_gib = 18
    found.deploy(1, kind="StatefulSet")
    found.runs_until(lambda: found.replicas("statefulset") == 3)


def test_no_more_replicas_than_the_tenant_can_pay_for(fleet: Fleets) -> None:
    found = fleet(quota={"limit": "35Gi", "wholeGPU": "80Gi"})
    found.load_gib = 100
    found.deploy(2)
    found.runs_until(lambda: found.told().get("reason") == "QuotaReached")
    assert found.replicas() == 3
    assert "has 5Gi left, and a pod is charged 10Gi" in found.told()["message"]


def test_an_observing_policy_only_says_what_it_would_do(fleet: Fleets) -> None:
    found = fleet(mode="Observe")
    found.load_gib = 30
    found.deploy(2, resources={"limits": {"nvidia.com/gpu": "1", "nvidia.com/memory": "10Gi"}})
    found.runs_until(lambda: found.told().get("reason") == "Observed")
    assert "From 2 to 3 replicas" in found.told()["message"]
    assert found.replicas() == 2
    assert found.active() == ("False", "Observed")


def test_a_new_leader_remembers_what_was_recommended(fleet: Fleets) -> None:
    found = fleet(scaleDown={"stabilizationSeconds": 3600})
    found.load_gib = 24
    found.deploy(3)
    found.runs_until(lambda: found.told().get("recommendedReplicas") == 3)
    found.load_gib = 3
    found.runs_until(lambda: found.told().get("reason") == "Stabilizing")
    stood = found.told()["recentHighest"]
    assert [one["replicas"] for one in stood] == [3]

    os.kill(found.leader_pid(), signal.SIGKILL)
    found.revive()
    found.runs_until(lambda: found.told().get("reason") == "TooManyUnknown")
    found.runs_until(lambda: found.told().get("reason") == "Stabilizing")
    assert found.replicas() == 3
    assert found.told()["recentHighest"][0]["replicas"] == 3


def test_a_policy_without_targets_tells_nothing_of_scaling_any_more(fleet: Fleets) -> None:
    found = fleet()
    found.load_gib = 16
    found.deploy(2)
    found.runs_until(lambda: found.told().get("reason") == "OnTarget")
    labels = {"namespace": found.namespace, "policy": "training", "kind": "Deployment"}
    found.until(lambda: found.series("gpumem_scaling_replicas", **labels) == [2])
    assert found.series("gpumem_scaling_reason", **labels, reason="OnTarget") == [1]
    found.kubectl("patch", "gmp", "training", "--type=merge", "-p", '{"spec": {"scaling": []}}')
    found.until(lambda: not found.told())
    found.until(lambda: not found.series("gpumem_scaling_replicas", **labels))
    assert found.active() == ("", "")


def test_anything_with_a_scale_subresource_is_scaled(fleet: Fleets) -> None:
    reference = {"apiVersion": "engines.example/v1", "kind": "Engine", "name": "serve"}
    found = fleet(targetRef=reference)
    found.load_gib = 40
    found.deploy(2)
    define(
        found.cluster,
        group="engines.example",
        version="v1",
        kind="Engine",
        schema=ENGINES,
        subresources=SCALABLE,
    )
    engine = {
        "apiVersion": "engines.example/v1",
        "kind": "Engine",
        "metadata": {"name": "serve", "namespace": found.namespace},
        "spec": {"size": 2},
    }
    found.create(engine)
    status = json.dumps({"status": {"selector": "app=serve,app notin (other)", "size": 2}})
    arguments = ("engine", "serve", "--subresource=status", "--type=merge", "-p", status)
    found.kubectl("patch", *arguments)

    def grown() -> bool:
        return found.kubectl("get", "engine", "serve", "-o", "jsonpath={.spec.size}") == "3"

    found.runs_until(grown)
    assert found.replicas() == 2, "its own Deployment is nobody's target"


def test_the_controller_has_every_right_that_it_uses(operator: Installation) -> None:
    text = operator.controller_log.read_text()
    lines = [line for line in text.lower().splitlines() if "being terminated" not in line]
    # The one refusal that a test is about names its kind.
    assert [line for line in lines if "forbidden" in line and "replicasets" not in line] == []
    assert "Traceback" not in text


_WHOLE_NUMBER = {"type": "integer"}
_SPEC = {"size": _WHOLE_NUMBER}
_STATUS = {"size": _WHOLE_NUMBER, "selector": {"type": "string"}}
ENGINES = {
    "properties": {
        "spec": {"type": "object", "properties": _SPEC},
        "status": {"type": "object", "properties": _STATUS},
    }
}
SCALABLE = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.selector",
    },
}

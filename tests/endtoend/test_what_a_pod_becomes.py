"""The plan of a pod as the API server stores it, with all that the server adds by itself."""

from __future__ import annotations

from typing import Any

import pytest

from endtoend.team import Team, environment, pod

pytestmark = pytest.mark.cluster


def exported(stored: dict[str, Any]) -> dict[str, Any]:
    """What a person would keep of `kubectl get -o yaml` to create the pod again."""
    kept = ("name", "labels", "annotations")
    metadata = {key: stored["metadata"][key] for key in kept if key in stored["metadata"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": stored["spec"]}


def test_an_exported_pod_that_is_created_again_comes_out_the_same(team: Team) -> None:
    team.policy(
        limits={"default": "8Gi"},
        frameworks={"pytorch": {"allocatorConfig": {"max_split_size_mb": "128"}}},
        datasetCache={"mountPath": "/mnt/data", "sizeLimit": "1Gi"},
    )
    own = {"PYTORCH_CUDA_ALLOC_CONF": "backend:native", "PYTHONPATH": "/app"}
    team.create(pod(env=own))
    first = exported(team.get("pod", "train"))
    team.kubectl("delete", "pod", "train", "--force", "--grace-period=0")
    assert "created" in team.create(first)
    assert exported(team.get("pod", "train")) == first


def test_an_exported_pod_follows_the_policy_of_the_day_it_is_created_again(team: Team) -> None:
    team.policy(limits={"default": "8Gi"})
    team.create(pod())
    first = exported(team.get("pod", "train"))
    team.kubectl("delete", "pod", "train", "--force", "--grace-period=0")
    change = '{"spec": {"limits": {"default": "4Gi"}, "injection": {"shim": "Disabled"}}}'
    team.kubectl("patch", "gmp", "training", "--type=merge", "-p", change)
    team.create(first)
    again = team.get("pod", "train")
    assert environment(again)["GPUMEM_LIMIT_BYTES"] == str(4 * 2**30)
    assert environment(again)["CUPY_GPU_MEMORY_LIMIT"] == str(3 * 2**30)
    assert "PYTHONPATH" not in environment(again)
    assert [one["name"] for one in again["spec"]["initContainers"]] == ["gpumem-sidecar"]


def test_the_policy_counts_the_pods_that_were_admitted_before_it_changed(team: Team) -> None:
    team.policy(limits={"default": "8Gi"})
    team.create(pod())
    counts = ["get", "gmp", "training", "-o", "jsonpath={.status.pods}"]
    team.until(*counts, until='"managed":1,"outdated":0,"unmanaged":0')
    change = '{"spec": {"limits": {"default": "4Gi"}}}'
    team.kubectl("patch", "gmp", "training", "--type=merge", "-p", change)
    team.until(*counts, until='"managed":1,"outdated":1,"unmanaged":0')


def test_a_pod_that_was_there_before_the_policy_is_counted_as_unmanaged(team: Team) -> None:
    team.create(pod())
    team.policy(limits={"default": "8Gi"})
    team.until("get", "gmp", "training", "-o", "jsonpath={.status.pods}", until='"unmanaged":1')
    team.until("get", "pod", "train", "-o", "jsonpath={.metadata.labels}",
               until='"gpumemory.dev/managed":"false"')  # fmt: skip

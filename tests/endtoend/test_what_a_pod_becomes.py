"""The plan of a pod as the API server stores it, with all that the server adds by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.installation import Installation
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


def again(team: Team) -> dict[str, Any]:
    """The pod `train`, deleted and created again from what was exported of it."""
    export = exported(team.get("pod", "train"))
    team.kubectl("delete", "pod", "train", "--force", "--grace-period=0")
    assert "created" in (said := team.create(export)), said
    return team.get("pod", "train")


def change(team: Team, **spec: Any) -> None:
    patch = json.dumps({"spec": spec})
    team.kubectl("patch", "gmp", "training", "--type=merge", "-p", patch)


@pytest.mark.parametrize("own", [None, True], ids=["ours", "its author's"])
def test_processes_are_shared_only_as_long_as_somebody_wants_it(
    team: Team, own: bool | None
) -> None:
    team.policy(limits={"default": "8Gi"}, monitoring={"mode": "Sidecar"})
    raw = pod()
    if own is not None:
        raw["spec"]["shareProcessNamespace"] = own
    team.create(raw)
    assert team.get("pod", "train")["spec"]["shareProcessNamespace"] is True

    change(team, monitoring={"mode": "NodeAgent"})

    assert again(team)["spec"].get("shareProcessNamespace") is own


@pytest.fixture
def filling(installation: Installation) -> Iterator[None]:
    installation.upgrade({"scheduling": {"fillResource": "Enabled"}})
    yield
    installation.upgrade({"scheduling": {"fillResource": "Disabled"}})


@pytest.mark.usefixtures("filling")
def test_memory_that_was_filled_in_is_judged_and_filled_in_anew(
    team: Team, installation: Installation
) -> None:
    def memory(stored: dict[str, Any]) -> list[str | None]:
        resources = stored["spec"]["containers"][0]["resources"]
        return [resources[kind].get("nvidia.com/memory") for kind in ("limits", "requests")]

    team.policy(limits={"default": "8Gi"})
    team.create(pod(limits={"nvidia.com/gpu": 2}))
    assert memory(team.get("pod", "train")) == ["16Gi", "16Gi"]

    change(team, limits={"default": "3Gi", "max": "4Gi"})
    assert memory(lowered := again(team)) == ["6Gi", "6Gi"]
    assert environment(lowered)["GPUMEM_LIMIT_BYTES"] == str(3 * 2**30)

    installation.upgrade({"scheduling": {"fillResource": "Disabled"}})
    assert memory(unfilled := again(team)) == [None, None]
    assert environment(unfilled)["GPUMEM_LIMIT_SOURCE"] == "Policy"


def test_a_pod_that_asks_for_no_gpu_at_all_pretends_nothing(team: Team) -> None:
    team.policy(limits={"default": "8Gi"})
    forged = {"GPUMEM_LIMIT_SOURCE": "Annotation", "GPUMEM_LIMIT_BYTES": "1", "MINE": "1"}
    team.create(pod(env=forged, limits={"nvidia.com/gpu": 0}))

    assert environment(team.get("pod", "train")) == {"MINE": "1"}
    team.create(pod("counted"))
    counts = ["get", "gmp", "training", "-o", "jsonpath={.status.pods}"]
    team.until(*counts, until='"managed":1,"outdated":0,"unmanaged":0')


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

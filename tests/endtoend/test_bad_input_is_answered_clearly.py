"""What people get wrong, against a real API server with the operator installed from its chart.

Each mistake gets a sentence that names it, and nothing else in the namespace suffers.
"""

from __future__ import annotations

from typing import Any

import pytest

from endtoend.team import Team, environment, pod

pytestmark = pytest.mark.cluster

WITH_MEMORY = {"nvidia.com/gpu": 1, "nvidia.com/memory": "8Gi"}


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        pytest.param(
            pod(limits={"nvidia.com/memory": "8Gi"}),
            "8Gi of GPU memory without a GPU",
            id="memory without a GPU",
        ),
        pytest.param(
            pod(limits=WITH_MEMORY, annotations={"gpumemory.dev/limit": "16Gi"}),
            "but the pod's annotation says 16Gi per GPU",
            id="resource and annotation disagree",
        ),
        pytest.param(
            pod(annotations={"gpumemory.dev/limit": "48Gi"}),
            "48Gi per GPU, more than the largest limit per GPU, 40Gi",
            id="above max",
        ),
        pytest.param(
            pod(annotations={"gpumemory.dev/limit": "8GB"}), "did you mean 8Gi?", id="8GB"
        ),
        pytest.param(pod(annotations={"gpumemory.dev/limit": "-1"}), "is negative", id="-1"),
        pytest.param(pod(annotations={"gpumemory.dev/limit": "0"}), "less than", id="0"),
        pytest.param(
            pod(annotations={"gpumemory.dev/limit": "1e30"}), "largest quantity", id="1e30"
        ),
        pytest.param(
            pod(annotations={"gpumemory.dev/limit.trainer": "8Gi"}),
            "no container 'trainer'",
            id="annotation for a container that is not there",
        ),
        pytest.param(
            pod(env={"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb=128"}),
            "PyTorch aborts on it inside `import torch`",
            id="allocator string",
        ),
        pytest.param(
            pod(limits={"nvidia.com/gpu": 8, "nvidia.com/memory": "8Gi"}),
            "8Gi over 8 GPUs = 1Gi per GPU",
            id="per GPU instead of the total",
        ),
    ],
)
def test_a_pod_is_refused_with_its_numbers(team: Team, mistake: dict[str, Any], said: str) -> None:
    team.policy()
    answer = team.create(mistake)
    assert f"GPU pod {team.name}/train is refused" in answer
    assert said in answer
    assert "created" in team.create(pod("right", limits=WITH_MEMORY))


def test_the_one_policy_that_decides_is_the_one_of_the_highest_priority(team: Team) -> None:
    team.policy("first")
    team.policy("second", priority=10, limits={"default": "16Gi"})
    team.create(pod())
    stored = team.get("pod", "train")
    assert stored["metadata"]["labels"]["gpumemory.dev/policy"] == "second"
    assert environment(stored)["GPUMEM_LIMIT_BYTES"] == str(16 * 2**30)
    team.until("get", "gmp", "first", "-o",
               "jsonpath={.status.conditions[?(@.type=='Shadowed')].status}",
               until="True")  # fmt: skip


def test_a_policy_that_is_deleted_between_two_pods_decides_about_the_first_alone(
    team: Team,
) -> None:
    team.policy()
    team.create(pod("before"))
    team.kubectl("delete", "gmp", "training")
    team.create(pod("after"))
    assert "GPUMEM_LIMIT_SOURCE" in environment(team.get("pod", "before"))
    assert environment(team.get("pod", "after")) == {}


def test_five_hundred_containers_are_one_pod_like_any_other(team: Team) -> None:
    team.policy()
    raw = pod()
    template = raw["spec"]["containers"][0]
    raw["spec"]["containers"] = [{**template, "name": f"c{number}"} for number in range(500)]
    assert "created" in team.create(raw)
    stored = team.get("pod", "train")["spec"]
    assert all(
        "GPUMEM_LIMIT_BYTES" in {entry["name"] for entry in container["env"]}
        for container in stored["containers"]
    )
    assert [one["name"] for one in stored["initContainers"]] == ["gpumem-shim", "gpumem-sidecar"]


def test_a_pod_without_a_token_gets_none_and_is_handled(team: Team) -> None:
    team.policy()
    assert "created" in team.create(pod(automountServiceAccountToken=False))
    stored = team.get("pod", "train")["spec"]
    assert [volume["name"] for volume in stored["volumes"] if "projected" in volume] == [
        "gpumem-token"
    ]
    mounts = stored["containers"][0]["volumeMounts"]
    assert "/var/run/secrets/kubernetes.io/serviceaccount" not in {m["mountPath"] for m in mounts}


def test_names_may_be_as_long_as_kubernetes_allows(team: Team) -> None:
    assert "created" in team.policy("p" * 63)
    raw = pod("n" * 253)
    raw["spec"]["containers"][0]["name"] = "c" * 63
    assert "created" in team.create(raw)
    labels = team.get("pod", "n" * 253)["metadata"]["labels"]
    assert labels["gpumemory.dev/policy"] == "p" * 63
    assert "at most 63 characters" in team.policy("q" * 64)


def test_a_dry_run_is_answered_and_leaves_nothing(team: Team) -> None:
    team.policy()
    answer = team.kubectl("run", "train", "--image=train:1", "--dry-run=server",
                          "--overrides=" + '{"spec": {"containers": [{"name": "main", "image": "a",'
                          ' "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}',
                          "-o", "jsonpath={.metadata.labels}")  # fmt: skip
    assert "gpumemory.dev/managed" in answer
    assert "No resources found" in team.kubectl("get", "pods")


def test_what_people_write_wrong_in_a_policy_never_reaches_a_pod(team: Team) -> None:
    assert "did you mean 8Gi?" in team.policy(limits={"default": "8GB"})
    assert "created" in team.create(pod())
    assert environment(team.get("pod", "train")) == {}

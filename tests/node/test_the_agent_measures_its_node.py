"""The agent on a real node, where its pod has NVML, the kubelet's socket and its folders."""

from __future__ import annotations

import json
from typing import Any

import pytest

from devcluster.installation import NAMESPACE
from devcluster.node import Node
from endtoend.team import Team
from node.workload import (
    MIB,
    agents_sample,
    container_states,
    holding,
    nvml_in_gpu_containers,
    processes_of,
    restricted_pod_spec,
    run_pod,
)

pytestmark = pytest.mark.cluster

HELD_MIB, MANAGED_MIB = 4096, 1024
SHARED = "nvidia.com/gpu.shared"


@pytest.fixture
def measured_by_agent(team: Team) -> Team:
    """Its policy leaves measurement to the agent."""
    spec = {"limits": {"default": "8Gi"}, "monitoring": {"mode": "NodeAgent"}}
    team.kubectl("patch", "gmp", "training", "--type=merge", "-p", json.dumps({"spec": spec}))
    team.until("get", "gmp", "training", "-o", "yaml", until="observedGeneration: 2")
    return team


def test_in_mode_node_agent_a_pod_gets_no_sidecar_and_is_measured_with_its_shims_claims(
    operator_in_pods: Node, measured_by_agent: Team
) -> None:
    team = measured_by_agent
    program = f"import torch; {holding(HELD_MIB)}"

    stored = run_pod(team, "train", restricted_pod_spec(program, env={"PYTHONPATH": "/library"}))
    team.until("get", "gmp", "training", "-o", "yaml", until=f"usedBytes: {HELD_MIB * MIB}")
    [process] = processes_of(stored, agents_sample(operator_in_pods))

    assert container_states(stored).keys() == {"gpumem-shim", "main"}
    assert "shareProcessNamespace" not in stored["spec"]
    assert process["container"] == "main"
    [claimed] = process["shim"]["frameworks"]
    assert (claimed["name"], claimed["version"]) == ("torch", "2.9.1")


def test_a_policy_that_leaves_measurement_to_the_agent_is_wholly_applied(
    measured_by_agent: Team,
) -> None:
    conditions = measured_by_agent.get("gmp", "training")["status"]["conditions"]

    [ready] = [one for one in conditions if one["type"] == "Ready"]
    assert (ready["status"], ready["reason"]) == ("True", "Applied")


@nvml_in_gpu_containers
def test_what_is_used_of_a_card_that_the_kubelet_gave_to_one_container_is_its(
    operator_in_pods: Node, team: Team
) -> None:
    run_pod(team, "train", restricted_pod_spec(holding(HELD_MIB, managed_mib=MANAGED_MIB)))

    [given] = assignments_of(team, agents_sample(operator_in_pods))
    assert (given["podName"], given["container"], given["unnamed"]) == ("train", "main", 0)
    assert len(given["gpus"]) == 1
    used = (HELD_MIB + MANAGED_MIB) * MIB
    team.until("get", "gmp", "training", "-o", "yaml", until=f"usedBytes: {used}")


@nvml_in_gpu_containers
def test_a_card_that_containers_share_by_replicas_is_divided_by_processes(
    operator_in_pods: Node, team: Team
) -> None:
    for name in ("one", "two"):
        spec = restricted_pod_spec(holding(HELD_MIB, managed_mib=MANAGED_MIB))
        spec["containers"][0]["resources"] = {"limits": {SHARED: 1}}
        run_pod(team, name, spec)

    given = assignments_of(team, agents_sample(operator_in_pods))
    assert {one["podName"] for one in given} == {"one", "two"}
    assert len({gpu for one in given for gpu in one["gpus"]}) == 1
    assert [one["unnamed"] for one in given] == [0, 0]
    team.until("get", "gmp", "training", "-o", "yaml", until=f"usedBytes: {2 * HELD_MIB * MIB}")


@nvml_in_gpu_containers
def test_a_card_that_was_given_and_is_not_used_counts_as_nothing(
    operator_in_pods: Node, team: Team
) -> None:
    run_pod(team, "idle", restricted_pod_spec("import time; time.sleep(3600)"))

    assert len(assignments_of(team, agents_sample(operator_in_pods))) == 1
    team.until("get", "gmp", "training", "-o", "yaml", until="usedBytes: 0")


def test_its_log_tells_of_nothing_but_its_cards_and_that_reports_arrive(
    operator_in_pods: Node,
) -> None:
    log = operator_in_pods.cluster.kubectl(
        "logs", "daemonset/gpu-memory-operator-agent", "-n", NAMESPACE
    ).stdout

    assert log.splitlines()[-1] == "gpumem_sidecar: reports arrive"
    assert "does not say" not in log, "the kubelet answers"


def assignments_of(team: Team, sample: Any) -> list[Any]:
    return [one for one in sample["assignments"] if one["podNamespace"] == team.name]

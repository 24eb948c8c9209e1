"""A sidecar in a pod reads NVML or says that it can not, and the node's agent is believed first."""

from __future__ import annotations

import json

import pytest

from devcluster.node import Node
from endtoend.team import Team
from node.workload import (
    MIB,
    agents_sample,
    execute,
    holding,
    nvml_everywhere,
    nvml_in_gpu_containers,
    processes_of,
    restricted_pod_spec,
    run_pod,
)

pytestmark = pytest.mark.cluster

HELD_MIB = 4096
SAMPLE = ("python", "-m", "gpumem_sidecar", "--once")


def test_what_another_container_holds_is_in_the_policys_status(team: Team) -> None:
    run_pod(team, "train", restricted_pod_spec(holding(HELD_MIB)))

    team.until("get", "gmp", "training", "-o", "yaml", until=f"usedBytes: {HELD_MIB * MIB}")

    memory = team.get("gmp", "training")["status"]["memory"]
    assert memory["unknownPods"] == 0
    assert memory["declaredBytes"] == 8192 * MIB


@nvml_everywhere
def test_sidecar_and_agent_agree_on_the_process(operator_in_pods: Node, team: Team) -> None:
    stored = run_pod(team, "train", restricted_pod_spec(holding(HELD_MIB)))
    [main] = stored["status"]["containerStatuses"]

    sample = json.loads(execute(team, "train", *SAMPLE, container="gpumem-sidecar"))
    [seen] = sample["processes"]
    [by_agent] = processes_of(stored, agents_sample(operator_in_pods))

    assert seen["bytes"] == by_agent["bytes"] == HELD_MIB * MIB
    assert seen["startTime"] == by_agent["startTime"]
    assert seen["pid"] != by_agent["pid"], "each speaks of its own PID namespace"
    id_alone = main["containerID"].removeprefix("containerd://")
    for found in (seen, by_agent):
        assert found["containerId"].removeprefix("containerd://") == id_alone


@nvml_in_gpu_containers
def test_without_nvml_the_sidecar_says_so_and_the_agents_numbers_win(team: Team) -> None:
    program = f"import torch; {holding(HELD_MIB)}"
    run_pod(team, "train", restricted_pod_spec(program, env={"PYTHONPATH": "/library"}))

    sample = json.loads(execute(team, "train", *SAMPLE, container="gpumem-sidecar"))
    [relayed] = sample["processes"]
    team.until("get", "gmp", "training", "-o", "yaml", until=f"usedBytes: {HELD_MIB * MIB}")

    assert sample["unknown"] == relayed["unknown"] == "NoNVMLInSidecar"
    assert (relayed["source"], relayed["container"]) == ("Shim", "main")
    assert [one["name"] for one in relayed["shim"]["frameworks"]] == ["torch"]

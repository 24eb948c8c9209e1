"""A sidecar in a pod reads NVML, and what it reports reaches the policy over the pods' network."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from devcluster.node import Node
from devcluster.simulated_driver import build
from endtoend.team import Team
from node.workload import (
    MIB,
    execute,
    restricted_pod_spec,
    run_pod,
    with_nvml,
    without_nvml,
)

pytestmark = pytest.mark.cluster

HELD_MIB = 4096
HOLD = ["simulated-alloc", "--gpu", "0", "--mib", str(HELD_MIB)]
HOLDS = f"import os; os.execvp({HOLD[0]!r}, {HOLD!r})"
WAITS = "import torch, time; time.sleep(3600)"


@with_nvml
def test_what_another_container_holds_is_in_the_policys_status(team: Team) -> None:
    run_pod(team, "train", restricted_pod_spec(HOLDS))

    team.until("get", "gmp", "training", "-o", "yaml", until=f"usedBytes: {HELD_MIB * MIB}")

    memory = team.get("gmp", "training")["status"]["memory"]
    assert memory["unknownPods"] == 0
    assert memory["declaredBytes"] == 8192 * MIB


@with_nvml
def test_sidecar_and_agent_agree_on_the_process(operator_in_pods: Node, team: Team) -> None:
    stored = run_pod(team, "train", restricted_pod_spec(HOLDS))
    [main] = stored["status"]["containerStatuses"]

    sample = ("python", "-m", "gpumem_sidecar", "--once")
    [seen] = processes(execute(team, "train", *sample, container="gpumem-sidecar"))
    agents = processes(agents_sample(operator_in_pods))
    [by_agent] = [found for found in agents if found["podUid"] == stored["metadata"]["uid"]]

    assert seen["bytes"] == by_agent["bytes"] == HELD_MIB * MIB
    assert seen["startTime"] == by_agent["startTime"]
    assert seen["pid"] != by_agent["pid"], "each speaks of its own PID namespace"
    id_alone = main["containerID"].removeprefix("containerd://")
    for found in (seen, by_agent):
        assert found["containerId"].removeprefix("containerd://") == id_alone


@without_nvml
def test_without_nvml_the_pod_is_unknown_and_the_policy_says_why(team: Team) -> None:
    run_pod(team, "train", restricted_pod_spec(WAITS, env={"PYTHONPATH": "/library"}))

    team.until("get", "gmp", "training", "-o", "yaml", until="NoNVMLInSidecar")

    status = team.get("gmp", "training")["status"]
    assert status["memory"]["unknownPods"] == 1
    assert "usedBytes" not in status["memory"]


def processes(report: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(report)["processes"]
    return found


def agents_sample(node: Node) -> str:
    """One sample by the agent, in the node's own namespaces."""
    variables = [
        f"PYTHONPATH={Path(__file__).parents[2] / 'sidecar'}",
        f"LD_LIBRARY_PATH={build().folder}",
        f"SIMULATED_NVIDIA_DRIVER={node.driver_state}",
    ]
    command = [sys.executable, "-m", "gpumem_sidecar", "--agent", "--once"]
    done = node.run("env", *variables, *command)
    assert done.returncode == 0, done.stderr
    return done.stdout

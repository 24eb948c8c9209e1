"""The last resort, on a node with a kubelet: the agent ends the process, and nothing else."""

from __future__ import annotations

import json
from typing import Any

from endtoend.team import Team
from node.workload import (
    container_states,
    holding,
    nvml_everywhere,
    restricted_pod_spec,
    run_pod,
)

WITHIN_MIB, ABOVE_MIB = 2048, 9216


def two_containers(above: str, within: str) -> dict[str, Any]:
    """One of them holds more than its limit; both are started anew where they end."""
    spec = restricted_pod_spec(above)
    [first] = spec["containers"]
    second = {**first, "name": "neighbour", "command": ["python", "-c", within]}
    return {**spec, "containers": [first, second]}


@nvml_everywhere
def test_a_process_over_its_limit_is_killed_and_its_neighbour_lives(team: Team) -> None:
    enforcement = {"mode": "Enforce", "actions": ["Kill"], "gracePeriodSeconds": 1}
    spec = {
        "limits": {"default": "8Gi"},
        "monitoring": {"mode": "NodeAgent"},
        "enforcement": enforcement,
    }
    team.kubectl("patch", "gmp", "training", "--type=merge", "-p", json.dumps({"spec": spec}))
    team.until("get", "gmp", "training", "-o", "yaml", until="observedGeneration: 2")
    run_pod(team, "train", two_containers(holding(ABOVE_MIB), holding(WITHIN_MIB)))

    team.until("get", "pod", "train", "-o", "json", until='"exitCode": 137')
    states = container_states(team.get("pod", "train"))
    assert ended(states["main"])["exitCode"] == 137
    assert states["neighbour"]["restartCount"] == 0
    assert states["neighbour"]["ready"]
    team.until("get", "gmp", "training", "-o", "yaml", until="action: Kill")
    policy = team.get("gmp", "training")
    line = policy["status"]["recentActions"][-1]
    assert (line["pod"], line["action"], line["result"]) == ("train", "Kill", "Done")
    assert line["limitBytes"] == 8 * 2**30
    assert "deletionTimestamp" not in team.get("pod", "train")["metadata"]


def ended(state: dict[str, Any]) -> dict[str, Any]:
    """How a container that was started anew has ended before, or how one has ended that waits."""
    both = {**state.get("lastState", {}), **state.get("state", {})}
    found: dict[str, Any] = both["terminated"]
    return found

"""The chart's own Deployments on a real node, with nothing of the operator's on this machine."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from devcluster.installation import NAMESPACE
from devcluster.node import Node
from endtoend.team import Team
from node.workload import (
    CARDS,
    COMPLAINT,
    MIB,
    MIB_PER_CARD,
    complaints_of_the_roles,
    container_states,
    create_library,
    describe,
    execute,
    execution,
    logs_of,
    restricted_pod_spec,
    run_pod,
    wait_until_measured,
)
from patience import WAIT, eventually

pytestmark = pytest.mark.cluster

WAITS = "import time; time.sleep(3600)"


def test_both_roles_become_ready_and_log_in_with_their_own_accounts(
    operator_in_pods: Node,
) -> None:
    for role in ("webhook", "controller"):
        what = f"deployment/gpu-memory-operator-{role}"
        get = ["get", what, "-n", NAMESPACE, "-o", "json"]
        status = json.loads(operator_in_pods.cluster.kubectl(*get).stdout)["status"]
        assert status["readyReplicas"] == 2
    assert complaints_of_the_roles(operator_in_pods.cluster) == []


def test_no_pod_of_ours_was_started_twice(operator_in_pods: Node) -> None:
    get = ["get", "pods", "-n", NAMESPACE, "-o", "json"]
    pods = json.loads(operator_in_pods.cluster.kubectl(*get).stdout)["items"]

    restarts = [
        container["restartCount"]
        for pod in pods
        for container in pod["status"]["containerStatuses"]
    ]
    assert restarts == [0, 0, 0, 0, 0]


def test_the_documented_command_shows_the_series_of_each_pod(operator_in_pods: Node) -> None:
    usage = (Path(__file__).parents[2] / "docs" / "usage.md").read_text()
    [path] = re.findall(r"^\$ kubectl get --raw (\S+/metrics)$", usage, re.MULTILINE)
    kubectl = operator_in_pods.cluster.kubectl
    select = "app.kubernetes.io/component in (webhook, controller)"
    names = kubectl("get", "pods", "-n", NAMESPACE, "-l", select, "-o", "name").stdout.split()

    def answers_that_know_cards() -> list[str] | None:
        told = [
            kubectl("get", "--raw", path.replace("POD", name.partition("/")[2])).stdout
            for name in names
        ]
        return told if any("gpumem_gpu_total_bytes{" in answer for answer in told) else None

    told = eventually(answers_that_know_cards)
    assert len(told) == 4
    assert sum("\ngpumem_leader 1.0" in answer for answer in told) == 1
    assert sum("gpumem_gpu_total_bytes{" in answer for answer in told) == 1


def test_the_node_offers_the_memory_of_its_cards(operator_in_pods: Node, team: Team) -> None:
    # The policy's status is written by the same controller: it has seen the cluster by then.
    team.until("get", "gmp", "training", "-o", "yaml", until="observedGeneration")
    path = "jsonpath={.status.capacity.nvidia\\.com/memory}"
    get = ["get", "node", operator_in_pods.name, "-o", path]

    assert operator_in_pods.cluster.kubectl(*get).stdout in (
        str(CARDS * MIB_PER_CARD * MIB),
        f"{CARDS * MIB_PER_CARD // 1024}Gi",
    )


def test_a_gpu_pod_runs_with_shim_and_sidecar_under_the_restricted_standard(team: Team) -> None:
    stored = run_pod(team, "train", restricted_pod_spec(WAITS))

    states = container_states(stored)
    assert set(states) == {"gpumem-shim", "gpumem-sidecar", "main"}
    assert states["gpumem-shim"]["state"]["terminated"]["exitCode"] == 0
    assert {states[name]["ready"] for name in ("gpumem-sidecar", "main")} == {True}
    assert f"GPUMEM_LIMIT_BYTES={8 * 1024 * MIB}" in execute(team, "train", "env")


def test_a_start_compiles_nothing(operator_in_pods: Node, team: Team) -> None:
    run_pod(team, "train", restricted_pod_spec(WAITS))
    verbose = ["python", "-v", "-c"]
    sidecar = "import gpumem_sidecar.__main__, gpumem_sidecar.channel, gpumem_shim.__main__"
    webhook = ["exec", "deployment/gpu-memory-operator-webhook", "-n", NAMESPACE, "--"]

    told = [
        execution(team, "train", *verbose, sidecar, container="gpumem-sidecar"),
        operator_in_pods.cluster.kubectl(
            *webhook, *verbose, "import gpumem_operator.webhook.process"
        ),
    ]

    for result in told:
        origins = re.findall(r"^# code object from '(.+)'$", result.stderr, re.MULTILINE)
        assert [one for one in origins if one.endswith(".py")] == []
        assert len(origins) > 50


def test_an_imported_framework_leaves_its_state_for_the_sidecar(team: Team) -> None:
    program = "import torch, time; print('imported', flush=True); time.sleep(3600)"
    run_pod(team, "train", restricted_pod_spec(program, env={"PYTHONPATH": "/library"}))
    team.until("logs", "train", "-c", "main", until="imported")

    written = execute(team, "train", "sh", "-c", "cat /run/gpumem/main/*.json")
    seen = execute(team, "train", "ls", "/run/gpumem/main", container="gpumem-sidecar").split()

    state = json.loads(written)
    assert state["container"] == "main"
    assert [found["version"] for found in state["frameworks"]] == ["2.9.1"]
    assert seen == [f"{state['pid']}-{state['startTime']}.json"]


def test_a_guaranteed_pod_stays_guaranteed(team: Team) -> None:
    limits = {"cpu": "100m", "memory": "128Mi"}

    stored = run_pod(team, "train", restricted_pod_spec(WAITS, limits=limits))

    assert stored["status"]["qosClass"] == "Guaranteed"


def test_a_job_completes_with_its_sidecar(team: Team) -> None:
    create_library(team)
    template = {"spec": {**restricted_pod_spec("print('done')"), "restartPolicy": "Never"}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}}
    assert "created" in team.create({**job, "spec": {"template": template, "backoffLimit": 0}})

    answer = team.kubectl("wait", "job/train", "--for=condition=Complete", WAIT)

    assert "condition met" in answer, describe(team, "pods")
    assert logs_of(team.cluster, team.name, "job-name=train").count("done") == 1


def test_nobody_complains_while_pods_are_measured(operator_in_pods: Node, team: Team) -> None:
    run_pod(team, "train", restricted_pod_spec(WAITS))
    wait_until_measured(team)

    assert complaints_of_the_roles(operator_in_pods.cluster) == []
    for container in ("gpumem-shim", "gpumem-sidecar"):
        log = team.kubectl("logs", "train", "-c", container)
        assert not COMPLAINT.search(log), log

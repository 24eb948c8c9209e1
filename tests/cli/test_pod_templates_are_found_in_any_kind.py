from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from cli_objects import GIB, container, namespace, policy, tenant

TEMPLATE = {"spec": {"containers": [container(gpu=1)]}}


def custom(kind: str, spec: dict[str, Any], *, group: str = "example.com") -> dict[str, Any]:
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": "bert", "namespace": "ml"},
        "spec": spec,
    }


PYTORCH_JOB = custom(
    "PyTorchJob",
    {
        "pytorchReplicaSpecs": {
            "Master": {"template": TEMPLATE},
            "Worker": {"replicas": 3, "template": TEMPLATE},
        }
    },
)


@pytest.mark.parametrize(
    ("spec", "rows"),
    [
        pytest.param({"replicas": 2, "template": TEMPLATE}, {"bert": 2}, id="where all have it"),
        pytest.param(PYTORCH_JOB["spec"], {"bert/Master": 1, "bert/Worker": 3}, id="PyTorchJob"),
        pytest.param(
            {
                "replicatedJobs": [
                    {
                        "name": "workers",
                        "replicas": 2,
                        "template": {
                            "spec": {"parallelism": 4, "completions": 3, "template": TEMPLATE}
                        },
                    }
                ]
            },
            {"bert/workers": 6},
            id="JobSet",
        ),
        pytest.param(
            {
                "headGroupSpec": {"template": TEMPLATE},
                "workerGroupSpecs": [
                    {"groupName": "gpu", "replicas": 2, "numOfHosts": 2, "template": TEMPLATE},
                    {"groupName": "idle", "replicas": 0, "template": TEMPLATE},
                ],
            },
            {"bert/headGroupSpec": 1, "bert/gpu": 4, "bert/idle": 0},
            id="RayCluster",
        ),
        pytest.param(
            {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": TEMPLATE}},
            {"bert/workerTemplate": 8},
            id="LeaderWorkerSet whose leader is like its workers",
        ),
        pytest.param(
            {
                "replicas": 2,
                "leaderWorkerTemplate": {
                    "size": 4,
                    "leaderTemplate": TEMPLATE,
                    "workerTemplate": TEMPLATE,
                },
            },
            {"bert/leaderTemplate": 2, "bert/workerTemplate": 6},
            id="LeaderWorkerSet with a leader of its own",
        ),
        pytest.param(
            {"tasks": [{"replicas": 5, "template": TEMPLATE}]},
            {"bert/tasks[0]": 5},
            id="an entry without a name",
        ),
        pytest.param(
            {"a": {"x": {"template": TEMPLATE}}, "b": {"x": {"template": TEMPLATE}}},
            {"bert/spec.a.x.template": 1, "bert/spec.b.x.template": 1},
            id="two parts of one name",
        ),
    ],
)
def test_each_template_is_a_row_with_the_replicas_above_it(
    run: Any, spec: dict[str, Any], rows: dict[str, int]
) -> None:
    result = run("charge", [namespace(), tenant(limit="1Ti"), policy(), custom("Thing", spec)])
    assert result.exit_code == 0, result.stderr
    answer = json.loads(result.stdout)
    assert {row["name"]: row["replicas"] for row in answer["pods"]} == rows
    assert answer["tenants"][0]["chargedBytes"] == sum(rows.values()) * 8 * GIB


def test_the_kind_and_how_it_was_counted_are_said(run: Any) -> None:
    text = run("charge", [policy(), PYTORCH_JOB]).stderr
    said = "kind PyTorchJob is not known; its template is counted"
    assert f"warning: ml/bert/Master: {said} 1 x (no replicas beside it)\n" in text
    assert f"warning: ml/bert/Worker: {said} 3 x (replicas 3)\n" in text


def test_replicas_that_are_no_number_and_a_larger_maximum_are_said(run: Any) -> None:
    group = {"replicas": "{{n}}", "maxReplicas": 9, "template": TEMPLATE}
    text = run("charge", [policy(), custom("Thing", {"group": group})]).stderr
    assert "counted 1 x (no replicas beside it, replicas '{{n}}' is no number" in text
    assert "maxReplicas 9)" in text


def test_rendered_pods_of_one_object_have_names_of_their_own(run: Any) -> None:
    result = run("render", [policy(), PYTORCH_JOB])
    names = [one["metadata"]["name"] for one in yaml.safe_load_all(result.stdout)]
    assert names == ["bert-master", "bert-worker"]


def test_steps_of_an_argo_workflow_are_pods_with_a_container_main(run: Any) -> None:
    steps = [
        {"name": "train", "container": container("ignored", gpu=1), "sidecars": [container("db")]},
        {"name": "plot", "script": {**container("ignored"), "source": "print()"}},
        {"name": "all", "dag": {"tasks": [{"name": "train", "template": "train"}]}},
    ]
    flow = custom("Workflow", {"templates": steps}, group="argoproj.io")
    result = run("charge", [policy(), flow])
    rows = json.loads(result.stdout)["pods"]
    assert [row["name"] for row in rows] == ["bert/train", "bert/plot"]
    assert rows[0]["containers"][0] == {
        "name": "main",
        "gpus": 1,
        "limitBytes": 8 * GIB,
        "source": "Policy",
    }
    assert "unknown field" not in result.stderr


def test_an_amount_that_is_filled_in_later_is_said_and_not_counted(run: Any) -> None:
    step = {"name": "train", "container": container(gpu="{{inputs.parameters.gpus}}")}
    flow = custom("Workflow", {"templates": [step]}, group="argoproj.io")
    result = run("charge", [policy(), flow])
    assert result.exit_code == 0
    assert "warning: ml/bert/train: its template can not be read before it is" in result.stderr


def test_gpu_limits_outside_of_any_template_are_said(run: Any) -> None:
    model = {"model": {"resources": {"limits": {"nvidia.com/gpu": 1}}}}
    text = run("charge", [policy(), custom("InferenceService", {"predictor": model})]).stderr
    assert (
        "warning: ml/bert: kind InferenceService is not known, and spec.predictor.model.resources."
        "limits is in no template of pods: it is not counted\n"
    ) in text


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"template": {"spec": {"source": {"repoURL": "a"}}}}, id="ApplicationSet"),
        pytest.param({"names": {"kind": "Thing"}, "versions": [{"schema": {}}]}, id="definition"),
    ],
)
def test_templates_of_other_things_are_passed_over(run: Any, spec: dict[str, Any]) -> None:
    result = run("charge", [policy(), custom("Thing", spec)])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["pods"] == []


def test_a_job_of_another_group_is_not_taken_for_kubernetes_own(run: Any) -> None:
    spec = {"tasks": [{"name": "worker", "replicas": 2, "template": TEMPLATE}]}
    result = run("charge", [policy(), custom("Job", spec, group="batch.volcano.sh")])
    assert json.loads(result.stdout)["pods"][0]["replicas"] == 2
    assert "kind Job is not known" in result.stderr

from __future__ import annotations

import json
from typing import Any

import pytest

from cli_objects import GIB, container, namespace, pod, policy, tenant, workload


def charged(result: Any) -> dict[str, Any]:
    assert result.exit_code == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_a_pod_and_its_tenant_in_exactly_the_documented_form(run: Any) -> None:
    result = run(
        "charge", [namespace(), tenant(), policy()], [pod(container(gpu=2, memory="16Gi"))]
    )
    assert charged(result) == {
        "pods": [
            {
                "namespace": "ml",
                "name": "train",
                "policy": "training",
                "chargeBytes": 16 * GIB,
                "containers": [
                    {"name": "main", "gpus": 2, "limitBytes": 8 * GIB, "source": "Resource"}
                ],
            }
        ],
        "tenants": [
            {
                "name": "research",
                "chargedBytes": 16 * GIB,
                "limitBytes": 160 * GIB,
                "fits": True,
            }
        ],
    }


@pytest.mark.parametrize(
    ("limits", "source", "per_gpu", "total"),
    [
        pytest.param({"gpu": 2, "memory": "16Gi"}, "Resource", 8 * GIB, 16 * GIB, id="resource"),
        pytest.param({"gpu": 3}, "Policy", 8 * GIB, 24 * GIB, id="policy default"),
        pytest.param({"mig-1g.10gb": 2}, "Profile", 10 * GIB, 20 * GIB, id="MIG profile"),
    ],
)
def test_the_source_of_a_limit_is_named(
    run: Any, limits: dict[str, Any], source: str, per_gpu: int, total: int
) -> None:
    answer = charged(run("charge", [policy(), pod(container(**limits))]))
    assert answer["pods"][0]["containers"][0]["source"] == source
    assert answer["pods"][0]["containers"][0]["limitBytes"] == per_gpu
    assert answer["pods"][0]["chargeBytes"] == total


def test_a_whole_gpu_has_no_limit_and_counts_what_the_tenant_says(run: Any) -> None:
    answer = charged(run("charge", [namespace(), tenant(whole="80Gi"), pod(container(gpu=2))]))
    assert answer["pods"][0]["policy"] is None
    assert answer["pods"][0]["containers"][0]["limitBytes"] is None
    assert answer["pods"][0]["containers"][0]["source"] == "WholeGPU"
    assert answer["pods"][0]["chargeBytes"] == 160 * GIB


def test_nothing_declared_and_no_tenant_is_unknown_and_not_zero(run: Any) -> None:
    result = run("charge", [pod(container(gpu=1))])
    assert charged(result)["pods"][0]["chargeBytes"] is None
    assert "warning: ml/train: main declares no GPU memory" in result.stderr


@pytest.mark.parametrize(
    ("kind", "spec", "replicas"),
    [
        pytest.param("Deployment", {"replicas": 3}, 3, id="replicas"),
        pytest.param("StatefulSet", {}, 1, id="one by default"),
        pytest.param("Deployment", {"replicas": 0}, 0, id="scaled to zero"),
        pytest.param("Job", {"parallelism": 4, "completions": 2}, 2, id="fewer completions"),
        pytest.param("Job", {"parallelism": 2, "completions": 9}, 2, id="as many as run at once"),
    ],
)
def test_a_workload_is_one_row_with_its_replicas_multiplied_in(
    run: Any, kind: str, spec: dict[str, Any], replicas: int
) -> None:
    answer = charged(run("charge", [namespace(), tenant(), policy(), workload(kind, **spec)]))
    assert answer["pods"][0]["replicas"] == replicas
    assert answer["pods"][0]["chargeBytes"] == replicas * 8 * GIB
    assert answer["tenants"][0]["chargedBytes"] == replicas * 8 * GIB


def test_a_daemonset_is_counted_once_with_a_warning(run: Any) -> None:
    result = run("charge", [policy(), workload("DaemonSet")])
    assert charged(result)["pods"][0]["replicas"] == 1
    assert "warning: ml/many: a DaemonSet has one pod for each node" in result.stderr


def test_a_tenant_that_does_not_fit_is_said_so_with_exit_code_zero(run: Any) -> None:
    files = [namespace(), tenant(limit="20Gi"), policy(), workload("Deployment", replicas=3)]
    answer = charged(run("charge", files))
    assert answer["tenants"][0]["fits"] is False


def test_with_several_tenants_the_pod_shows_the_largest_and_each_tenant_its_own(run: Any) -> None:
    tenants = [tenant("big", whole="80Gi"), tenant("small", whole="40Gi")]
    answer = charged(run("charge", [namespace(), *tenants, pod(container(gpu=1))]))
    assert answer["pods"][0]["chargeBytes"] == 80 * GIB
    assert [row["chargedBytes"] for row in answer["tenants"]] == [80 * GIB, 40 * GIB]


def test_init_containers_have_rows_and_only_the_largest_step_counts(run: Any) -> None:
    init = [{**container("fetch", gpu=1, memory="30Gi")}]
    one = pod(container("main", gpu=1, memory="8Gi"), initContainers=init)
    answer = charged(run("charge", [policy(), one]))
    assert [row["name"] for row in answer["pods"][0]["containers"]] == ["fetch", "main"]
    assert answer["pods"][0]["chargeBytes"] == 30 * GIB


def test_a_refused_pod_gives_an_error_line_and_the_other_rows(run: Any) -> None:
    refused = pod(container(gpu=8, memory="8Gi"), name="too-little")
    result = run("charge", [policy(), refused, pod()])
    assert result.exit_code == 1
    assert [row["name"] for row in json.loads(result.stdout)["pods"]] == ["train"]
    assert "error: ml/too-little: " in result.stderr
    assert "8Gi over 8 GPUs = 1Gi per GPU" in result.stderr
    assert "did you mean 64Gi?" in result.stderr


def test_finished_pods_are_charged_nothing(run: Any) -> None:
    finished = {**pod(), "status": {"phase": "Succeeded"}}
    assert charged(run("charge", [policy(), finished]))["pods"][0]["chargeBytes"] == 0


def test_values_of_the_chart_can_be_given(run: Any, tmp_path: Any) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("webhook: {replicas: 3}\nmemoryResource: example.com/gpu-memory\n")
    one = pod({**container(gpu=1), "resources": {"limits": {"nvidia.com/gpu": 1,
               "example.com/gpu-memory": "9Gi"}}})  # fmt: skip
    answer = charged(run("charge", [policy(), one], options=("--values", str(values))))
    assert answer["pods"][0]["chargeBytes"] == 9 * GIB


@pytest.mark.parametrize(("kind", "field"), [("Job", "parallelism"), ("StatefulSet", "replicas")])
def test_a_group_that_its_controller_never_makes_whole_is_warned_of(
    run: Any, kind: str, field: str
) -> None:
    def warned(size: int, pods: int) -> str:
        one = workload(kind, container(gpu=1, memory="8Gi"), **{field: pods})
        template = one["spec"]["template"]
        template["metadata"] = {"annotations": {"gpumemory.dev/group-size": str(size)}}
        stderr: str = run("charge", [one]).stderr
        return stderr

    text = warned(3, 2)
    assert f"gpumemory.dev/group-size is 3, and this {kind} has 2 at once" in text
    assert f"no pod starts; give {field} 3 or more" in text
    assert "group-size" not in warned(3, 4)
    assert "group-size" not in warned(2, 0)

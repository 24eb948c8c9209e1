from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpumem_operator.api.values import Values
from gpumem_operator.cli.app import app
from gpumem_operator.settings import load_values

POLICY = "apiVersion: gpumemory.dev/v1alpha1\nkind: GPUMemoryPolicy\nmetadata: {name: a}\n"
GPUS = "kind: Pod\nspec: {{containers: [{{name: x, resources: {{limits: {{{}}}}}}}]}}\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"


@pytest.mark.parametrize("command", ["render", "charge"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("a: b: c", "line 1: not YAML", id="not YAML"),
        pytest.param("\x00", "not YAML", id="binary"),
        pytest.param("- 1", "document 1: kind: [1] is not a Kubernetes object", id="a list"),
        pytest.param("kind: Service\n---\nfoo: 1", "document 2: kind", id="second document"),
        pytest.param(
            POLICY + "spec: {limits: {default: 8GB}}",
            "document 1 (GPUMemoryPolicy a): spec.limits.default: '8GB' is not a quantity: "
            "did you mean 8Gi?",
            id="8GB",
        ),
        pytest.param(POLICY + "spec: {limits: {min: -1}}", "is negative", id="negative"),
        pytest.param(POLICY + "spec: {limits: {max: 1e30}}", "largest quantity", id="1e30"),
        pytest.param(POLICY + "spec: {mod: Active}", "spec.mod: unknown field", id="typo"),
        pytest.param(
            POLICY.replace("v1alpha1", "v1") + "spec: {}",
            "is not gpumemory.dev/v1alpha1",
            id="version",
        ),
        pytest.param(
            POD + "spec: {containers: [{name: x, resources: {limits: {nvidia.com/gpu: 1, "
            "nvidia.com/memory: 8GB}}}]}",
            "nvidia.com/memory: '8GB' is not a quantity",
            id="quantity of a pod",
        ),
        pytest.param(
            GPUS.format("nvidia.com/gpu: 0.5"),
            "nvidia.com/gpu: 0.5 is not a whole number of GPUs",
            id="half a GPU",
        ),
        pytest.param(
            GPUS.format("nvidia.com/gpu: two"),
            "nvidia.com/gpu: two is not a whole number of GPUs",
            id="a GPU count in words",
        ),
        pytest.param(
            GPUS.format("nvidia.com/mig-1g.10gb: -1"),
            "nvidia.com/mig-1g.10gb: -1 is not a whole number of GPUs",
            id="a negative count",
        ),
        pytest.param(GPUS.format("nvidia.com/gpu: 2.0"), "of GPUs: write 2", id="2.0 GPUs"),
        pytest.param(
            GPUS.format("cpu: 1").replace("limits", "requests: {nvidia.com/gpu: 1}, limits"),
            "nvidia.com/gpu is in requests and not in limits",
            id="GPUs that are only requested",
        ),
        pytest.param(
            GPUS.format("nvidia.com/gpu: 2").replace(
                "limits", "requests: {nvidia.com/gpu: 1}, limits"
            ),
            "nvidia.com/gpu: requests 1 and limits 2 differ",
            id="fewer GPUs requested",
        ),
        pytest.param(
            POLICY.replace("GPUMemoryPolicy", "GpuMemoryPolicy") + "spec: {}",
            "kind: 'GpuMemoryPolicy' is no kind of gpumemory.dev: did you mean GPUMemoryPolicy?",
            id="our kind misspelt",
        ),
        pytest.param(
            POLICY.replace("GPUMemoryPolicy", "gpumemorytenant").replace("gpumemory.dev", "a.dev"),
            "did you mean GPUMemoryTenant?",
            id="our kind misspelt in another group",
        ),
        pytest.param(
            POLICY.replace("GPUMemoryPolicy", "GPUMemoryPolcy"),
            "did you mean GPUMemoryPolicy?",
            id="a letter of our kind missing",
        ),
        pytest.param(
            "apiVersion: a.dev/v1\nkind: Thing\nspec: {template: {spec: {containers: 5}}}",
            "pod.spec.containers: Input should be a valid list (it is 5)",
            id="a template of an unknown kind",
        ),
        pytest.param(
            POLICY.replace("GPUMemoryPolicy", "Widget"),
            "it has GPUMemoryPolicy and GPUMemoryTenant",
            id="a kind that our group does not have",
        ),
        pytest.param(
            "apiVersion: apps/v1\nkind: deployment\nspec: {}",
            "kind: 'deployment' is not known: did you mean Deployment?",
            id="a kind in lower case",
        ),
        pytest.param(
            "kind: Deployment\nmetadata: {name: a}\nspec: {templte: {}}",
            "document 1 (Deployment a): spec.template: None is not a template of pods",
            id="a workload without a template",
        ),
        pytest.param(
            "kind: CronJob\nspec: {jobTemplate: 5}",
            "spec.jobTemplate: 5 is not a CronJob's spec",
            id="a CronJob without a job",
        ),
        pytest.param(
            "kind: Deployment\nspec: {replicas: '3', template: {spec: {}}}",
            "spec.replicas: '3' is not a whole number of pods",
            id="replicas in quotes",
        ),
        pytest.param(
            "kind: PodList\nitems: 5", "document 1: items: 5 is not a list", id="a list of none"
        ),
        pytest.param(POD + "spec: {containers: 5}", "(it is 5)", id="wrong type"),
        pytest.param(POD + "spec: {containers: []}", "pod.spec.containers", id="no container"),
        pytest.param(
            "kind: Pod\nmetadata: {name: a, annotations: {gpumemory.dev/limit: 8}}\nspec: {}",
            "metadata.annotations.gpumemory.dev/limit: ",
            id="annotation that is a number",
        ),
    ],
)
def test_one_line_says_file_document_field_and_value(
    tmp_path: Path, command: str, text: str, said: str
) -> None:
    file = tmp_path / "given.yaml"
    file.write_text(text)
    result = CliRunner().invoke(app, [command, "-f", str(file)])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: {file}: ")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["render", "-f", str(tmp_path / "none.yaml")])
    assert result.exit_code == 2
    assert (
        result.stderr == f"error: {tmp_path}/none.yaml: can not be read: No such file or "
        "directory\n"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "memoryResourc: a/b", "memoryResourc: unknown value: did you mean memoryResource?",
            id="misspelt",
        ),
        pytest.param("sidecar: {imag: x}", "sidecar.imag: unknown field", id="misspelt inside"),
        pytest.param("a: 1\n---\nb: 2", "is not one YAML document: line 2", id="two documents"),
        pytest.param("a: [", "is not YAML: line 1", id="not YAML"),
        pytest.param("!!int x", "is not YAML", id="a tag that does not fit"),
        pytest.param("- 1", "holds a list", id="a list"),
    ],
)  # fmt: skip
def test_values_that_can_not_be_used_give_one_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(text)
    result = CliRunner().invoke(app, ["charge", "-f", "-", "--values", str(file)], input="")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {file}")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_no_value_of_the_chart_passes_for_a_misspelt_one() -> None:
    chart = Path(__file__).parents[2] / "charts" / "gpu-memory-operator" / "values.yaml"
    assert load_values(chart, whole_chart=True) == Values()

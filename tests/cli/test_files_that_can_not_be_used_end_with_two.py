from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpumem_operator.cli.app import app

POLICY = "apiVersion: gpumemory.dev/v1alpha1\nkind: GPUMemoryPolicy\nmetadata: {name: a}\n"
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

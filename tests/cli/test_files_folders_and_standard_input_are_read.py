from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli_objects import GIB, namespace, pod, policy, tenant, workload
from gpumem_operator.cli.app import app
from gpumem_operator.cli.parsing import parse


def invoke(*arguments: str, text: str | bytes | None = None) -> Any:
    return CliRunner().invoke(app, [*arguments], input=text)


def names(result: Any) -> list[str]:
    return [row["name"] for row in json.loads(result.stdout)["pods"]]


def test_standard_input_is_read_beside_files(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(json.dumps(policy()))
    result = invoke(
        "charge", "-f", str(tmp_path / "policy.yaml"), "-f", "-", text=json.dumps(pod())
    )
    assert json.loads(result.stdout)["pods"][0]["chargeBytes"] == 8 * GIB


def test_standard_input_can_be_given_once() -> None:
    result = invoke("charge", "-f", "-", "-f", "-", text="")
    assert result.exit_code == 2
    assert result.stderr == "error: standard input: can be read only once: give -f - once\n"


def test_a_folder_is_read_by_name_and_not_the_folders_in_it(tmp_path: Path) -> None:
    for name in ("c.json", "a.yml", "b.yaml"):
        (tmp_path / name).write_text(json.dumps(pod(name=name[0])))
    (tmp_path / "notes.txt").write_text("not: [an object")
    (tmp_path / "deeper.yaml").mkdir()
    (tmp_path / "deeper.yaml" / "d.yaml").write_text(json.dumps(pod(name="d")))
    assert names(invoke("charge", "-f", str(tmp_path))) == ["a", "b", "c"]


def test_a_folder_that_holds_nothing_to_read_is_a_fault(tmp_path: Path) -> None:
    result = invoke("charge", "-f", str(tmp_path))
    assert result.exit_code == 2
    assert result.stderr == (
        f"error: {tmp_path}: the folder holds no *.yaml, *.yml or *.json file\n"
    )


def test_both_are_in_the_help() -> None:
    text = " ".join(invoke("charge", "--help").stdout.replace("│", " ").split())
    assert "a folder (its *.yaml," in text
    assert "or - for standard" in text


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps(pod()).replace(", ", ",\n\t"), id="with tabs"),
        pytest.param(json.dumps(pod()) + "\n" + json.dumps(namespace()), id="one after the other"),
        pytest.param("\ufeff" + json.dumps(pod()), id="with a byte order mark"),
        pytest.param(json.dumps({"kind": "List", "items": [pod()]}), id="a list"),
        pytest.param(
            json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [{
                key: value for key, value in pod().items() if key in ("metadata", "spec")}]}),
            id="a list of pods, which do not say so",
        ),
    ],
)  # fmt: skip
def test_json_is_read_as_programs_write_it(text: str) -> None:
    assert names(invoke("charge", "-f", "-", text=text)) == ["train"]


def test_yaml_in_utf_16_is_read() -> None:
    text = "\n".join(f"{key}: {json.dumps(value)}" for key, value in pod().items())
    assert names(invoke("charge", "-f", "-", text=text.encode("utf-16"))) == ["train"]


def test_a_broken_json_file_is_said_to_be_neither(tmp_path: Path) -> None:
    file = tmp_path / "pod.json"
    file.write_text('{"kind": "Pod",\n "spec": {')
    result = invoke("charge", "-f", str(file))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {file}: line 2: not JSON or YAML: Expecting")
    assert result.stderr.count("\n") == 1


def test_dates_stay_text_as_kubernetes_reads_them() -> None:
    text = "kind: Pod\nmetadata: {name: a, creationTimestamp: 2026-01-01}\n"
    text += "spec: {containers: [{name: a}]}"
    result = invoke("render", "-o", "json", "-f", "-", text=text)
    assert json.loads(result.stdout)["items"][0]["metadata"]["creationTimestamp"] == "2026-01-01"


def test_what_a_file_says_once_for_two_places_can_be_changed_in_one() -> None:
    [document] = parse(b"a: &same [{b: c}]\nd: *same")
    document["a"][0]["b"] = "changed"
    document["a"].append("more")
    assert document["d"] == [{"b": "c"}]


def test_fail_if_over_ends_with_three_where_a_tenant_does_not_fit(run: Any) -> None:
    files = [namespace(), tenant(limit="20Gi"), policy(), workload("Deployment", replicas=3)]
    assert run("charge", files).exit_code == 0
    over = run("charge", files, options=("--fail-if-over",))
    assert over.exit_code == 3
    assert json.loads(over.stdout)["tenants"][0]["fits"] is False
    assert run("charge", [*files[:3], pod()], options=("--fail-if-over",)).exit_code == 0


def test_a_refusal_comes_before_what_does_not_fit(run: Any) -> None:
    bad = pod({"name": "a", "image": "a", "resources": {"limits": {"nvidia.com/memory": "8Gi"}}},
              name="bad")  # fmt: skip
    files = [namespace(), tenant(limit="20Gi"), policy(), workload("Deployment", replicas=3), bad]
    assert run("charge", files, options=("--fail-if-over",)).exit_code == 1


def test_a_table_shows_quantities(run: Any) -> None:
    files = [namespace(), tenant(limit="20Gi"), policy(), workload("Deployment", replicas=3)]
    result = run("charge", files, options=("-o", "table"))
    assert result.stdout.splitlines() == [
        "NAMESPACE   NAME   REPLICAS   POLICY     CHARGE   LIMITS PER GPU",
        "ml          many   3          training   24Gi     main 1 x 8Gi (Policy)",
        "",
        "TENANT     CHARGED   LIMIT   FITS",
        "research   24Gi      20Gi    no, 4Gi too much",
    ]


def test_a_table_tells_unknown_from_zero_and_from_no_limit(run: Any) -> None:
    result = run("charge", [pod()], options=("-o", "table"))
    assert result.stdout.splitlines()[1].endswith("unknown   main 1 x none (WholeGPU)")


def test_the_version_is_printed() -> None:
    result = invoke("--version")
    assert result.exit_code == 0
    assert result.stdout == "kubectl-gpumem 0.1.0\n"

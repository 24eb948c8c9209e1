from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from cli_objects import container, namespace, pod, policy, workload


def environment(rendered: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in rendered["spec"]["containers"][0]["env"]}


def test_json_is_one_object_with_items(run: Any) -> None:
    result = run("render", [policy(), pod(), pod(name="other")], options=("-o", "json"))
    assert result.exit_code == 0
    items = json.loads(result.stdout)["items"]
    assert [item["metadata"]["name"] for item in items] == ["train", "other"]
    assert environment(items[0])["GPUMEM_LIMIT_SOURCE"] == "Policy"


def test_yaml_is_the_default_and_one_document_for_each_pod(run: Any) -> None:
    result = run("render", [policy(), pod(), workload("Deployment", replicas=2)])
    names = [one["metadata"]["name"] for one in yaml.safe_load_all(result.stdout)]
    assert names == ["train", "many"]


def test_a_refusal_goes_to_stderr_with_exit_code_one_and_the_rest_is_printed(run: Any) -> None:
    bad = pod({"name": "main", "image": "a", "resources": {"limits": {"nvidia.com/memory": "8Gi"}}},
              name="bad")  # fmt: skip
    result = run("render", [policy(), bad, pod()])
    assert result.exit_code == 1
    assert "error: ml/bad: " in result.stderr
    assert "8Gi of GPU memory without a GPU" in result.stderr
    assert yaml.safe_load(result.stdout)["metadata"]["name"] == "train"


def test_pods_of_ignored_namespaces_and_without_a_policy_come_out_as_they_are(run: Any) -> None:
    left_out = namespace("ml", **{"gpumemory.dev/ignore": "true"})
    for files in ([left_out, policy(), pod()], [pod()]):
        result = run("render", files, options=("-o", "json"))
        assert json.loads(result.stdout)["items"] == [pod()]


def test_the_executable_answers_as_a_kubectl_plugin(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(json.dumps(pod(container(gpu=1, memory="8Gi"))))
    program = Path(sys.executable).parent / "kubectl-gpumem"
    result = subprocess.run([program, "render", "-f", file], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert yaml.safe_load(result.stdout)["metadata"]["name"] == "train"

from __future__ import annotations

import json
from typing import Any

import pytest

from cli_objects import container, namespace, pod, policy, tenant, workload

UNKNOWN = (
    "warning: namespace ml is in no file: its labels are not known, so tenants that select it by "
    "label may be missing\n"
)
NOBODY = "no policy or tenant of these files decides for it: it would be stored as it is\n"
NAME = "kubernetes.io/metadata.name"


def selecting(**selector: Any) -> dict[str, Any]:
    changed = tenant()
    changed["spec"]["namespaceSelector"] = selector
    return changed


@pytest.mark.parametrize("command", ["render", "charge"])
def test_a_namespace_whose_labels_are_not_known_is_warned_of_once(run: Any, command: str) -> None:
    result = run(command, [tenant(), policy(), pod(), pod(name="other")])
    assert result.exit_code == 0
    assert result.stderr.count(UNKNOWN) == 1


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        pytest.param({}, False, id="everything"),
        pytest.param({"matchLabels": {NAME: "ml"}}, False, id="its name"),
        pytest.param({"matchLabels": {NAME: "web", "team": "a"}}, False, id="another name"),
        pytest.param({"matchLabels": {NAME: "ml", "team": "a"}}, True, id="its name and a label"),
        pytest.param(
            {"matchExpressions": [{"key": NAME, "operator": "In", "values": ["ml", "web"]}]},
            False,
            id="one of several names",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
            True,
            id="a label that is not there",
        ),
    ],
)
def test_only_tenants_that_labels_could_bring_in_matter(
    run: Any, selector: dict[str, Any], said: bool
) -> None:
    result = run("charge", [selecting(**selector), policy(), pod()])
    assert (UNKNOWN in result.stderr) is said


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([namespace(), tenant(), policy(), pod()], id="in a file"),
        pytest.param([policy(), pod()], id="no tenant"),
        pytest.param([tenant(), policy(), pod(container())], id="no GPU"),
    ],
)
def test_nothing_is_said_where_labels_change_nothing(run: Any, objects: Any) -> None:
    assert "is in no file" not in run("charge", objects).stderr


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([], id="no policy"),
        pytest.param([policy(namespace="web")], id="policy of another namespace"),
        pytest.param(
            [policy(selector={"matchLabels": {"a": "b"}})], id="policy that does not select it"
        ),
        pytest.param([namespace("ml", team="web"), tenant()], id="tenant of others"),
    ],
)
def test_a_gpu_pod_that_nobody_decides_for_is_warned_of(run: Any, objects: Any) -> None:
    result = run("render", [*objects, pod()], options=("-o", "json"))
    assert result.exit_code == 0
    assert f"warning: ml/train: {NOBODY}" in result.stderr
    assert json.loads(result.stdout)["items"] == [pod()]


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([policy(), pod()], id="policy"),
        pytest.param([namespace(), tenant(), pod()], id="tenant"),
        pytest.param([pod(container())], id="no GPU"),
        pytest.param([pod(namespace="kube-system")], id="namespace that admission leaves out"),
    ],
)
def test_a_pod_that_is_decided_for_or_none_of_ours_is_not(run: Any, objects: Any) -> None:
    assert NOBODY not in run("render", objects).stderr


@pytest.mark.parametrize("command", ["render", "charge"])
def test_a_tenant_that_selects_nothing_is_warned_of(run: Any, command: str) -> None:
    said = "warning: tenant research selects no namespace of these files (ml): nothing is charged"
    result = run(command, [namespace(team="other"), tenant(), policy(), pod()])
    assert result.exit_code == 0
    assert result.stderr.count(said) == 1
    for files in (
        [namespace(), tenant(), policy(), pod()],
        [tenant(), policy(), pod()],
        [namespace("empty"), tenant(), policy(), pod()],
        [tenant()],
    ):
        assert "selects no namespace" not in run(command, files).stderr


@pytest.mark.parametrize("command", ["render", "charge"])
def test_files_without_any_pod_are_warned_of(run: Any, command: str) -> None:
    result = run(command, [namespace(), policy()])
    assert result.exit_code == 0
    assert result.stderr == "warning: these files hold no pod and nothing that creates pods\n"


def test_a_pod_without_gpus_is_charged_zero_and_not_unknown(run: Any) -> None:
    result = run("charge", [policy(), pod(container())])
    assert json.loads(result.stdout)["pods"][0]["chargeBytes"] == 0
    assert result.stderr == ""


def test_an_object_that_is_there_twice_is_warned_of(run: Any) -> None:
    result = run("charge", [policy(), pod()], [pod()])
    assert len(json.loads(result.stdout)["pods"]) == 2
    text = "warning: Pod ml/train is in the files more than once: each one counts\n"
    assert result.stderr.count(text) == 1
    assert result.stderr.splitlines() == [text.strip()]


def test_the_same_words_about_many_pods_are_said_once_with_their_number(run: Any) -> None:
    pods = [pod(name=f"p{number}") for number in range(12)]
    result = run("render", [policy(), *pods])
    assert result.stderr.count("PYTHONPATH") == 1
    assert "note: 12 pods (first ml/p0): PYTHONPATH is the shim's alone" in result.stderr


def test_a_hidden_pythonpath_is_a_note_about_the_rendered_pod_and_no_warning(run: Any) -> None:
    result = run("render", [policy(), pod()])
    assert result.stderr.startswith("note: ml/train: PYTHONPATH is the shim's alone")
    assert len(result.stderr.splitlines()) == 1
    assert run("charge", [policy(), pod()]).stderr == ""
    named = policy(injection={"imagePythonPath": "/opt/lib"}, limits={"default": "8Gi"})
    assert run("render", [named, pod()]).stderr == ""


def test_refusals_are_not_put_together(run: Any) -> None:
    bad = container(gpu=8, memory="8Gi")
    result = run("render", [policy(), pod(bad, name="a"), pod(bad, name="b")])
    assert result.exit_code == 1
    assert "error: ml/a: " in result.stderr
    assert "error: ml/b: " in result.stderr


def test_doubts_about_replicas_are_not_told_of_pods_without_gpus(run: Any) -> None:
    assert run("charge", [policy(), workload("DaemonSet", container())]).stderr == ""

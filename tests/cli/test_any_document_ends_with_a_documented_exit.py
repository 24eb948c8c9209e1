"""Whatever stands in a file: an answer, a refusal or one line, and never a stack of Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cli_objects import container, namespace, pod, policy, tenant, workload
from gpumem_operator.cli.app import app

WORDS = [
    "metadata", "name", "generateName", "namespace", "labels", "annotations", "spec", "status",
    "phase", "containers", "initContainers", "ephemeralContainers", "env", "value", "valueFrom",
    "resources", "limits", "requests", "volumeMounts", "mountPath", "volumes", "template",
    "templates", "container", "replicas", "parallelism", "items", "nvidia.com/gpu",
    "nvidia.com/memory", "gpumemory.dev/limit", "kind", "apiVersion",
]  # fmt: skip
KINDS = ["Pod", "List", "Deployment", "CronJob", "GPUMemoryPolicy", "GPUMemoryTenant", "Namespace"]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["8Gi", "8GB", "-1", "0.5", "{{x}}", "\u2028", "gpumem-shim", *KINDS])
)
KEYS = st.sampled_from(WORDS) | st.text(max_size=4)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
ENV = [
    {"name": "PYTORCH_CUDA_ALLOC_CONF", "value": "max_split_size_mb:64"},
    {"name": "CUPY_GPU_MEMORY_LIMIT", "value": "50%"},
    {"name": "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "value": "0=1G"},
    {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"},
    {"name": "PYTHONPATH", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
]
FULL = {
    **container(gpu=1, memory="8Gi"),
    "env": ENV,
    "envFrom": [{"configMapRef": {"name": "a"}}],
    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    "ports": [{"containerPort": 80}],
    "securityContext": {"runAsUser": 1},
}
FULL_POD = pod(
    FULL,
    initContainers=[{**container("fetch", gpu=1), "restartPolicy": "Always"}],
    ephemeralContainers=[{"name": "look", "image": "a"}],
    volumes=[{"name": "data", "configMap": {"name": "a"}}],
    schedulingGates=[{"name": "other"}],
    os={"name": "linux"},
    hostPID=False,
    shareProcessNamespace=False,
    nodeName="",
    securityContext={"runAsUser": 1},
)
FULL_POD["metadata"] |= {
    "labels": {"app": "a"},
    "annotations": {"gpumemory.dev/processes-per-gpu": "2", "gpumemory.dev/python-path": "/a"},
}
FULL_POD["status"] = {"phase": "Running"}
JOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "train", "namespace": "ml"},
    "spec": {"replicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": FULL_POD["spec"]}}}},
}
STEPS = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Workflow",
    "metadata": {"name": "steps", "namespace": "ml"},
    "spec": {"templates": [{"name": "a", "container": FULL, "sidecars": [FULL], "volumes": []}]},
}
VALID = [
    FULL_POD,
    JOB,
    STEPS,
    policy(
        limits={"default": "8Gi"},
        frameworks={"pytorch": {"allocatorConfig": {"max_split_size_mb": "128"}}},
    ),
    tenant(),
    namespace(),
    workload("Deployment", FULL, replicas=2),
    workload("Job", FULL, parallelism=2, completions=1),
    {"apiVersion": "v1", "kind": "PodList", "items": [FULL_POD]},
]


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths(inner, (*at, key))


def with_value(original: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = deepcopy(original)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


PLACES = [(number, path) for number, one in enumerate(VALID) for path in paths(one)]


def ends_as_documented(text: bytes, *options: str) -> None:
    result = CliRunner().invoke(app, [*options, "-f", "-"], input=text, catch_exceptions=False)
    assert result.exit_code in (0, 1, 2), result.output
    if result.exit_code == 2:
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
    assert all(
        line.startswith(("error: ", "warning: ", "note: ")) for line in result.stderr.splitlines()
    )
    if "json" in options and result.exit_code != 2:
        json.loads(result.stdout, parse_constant=pytest.fail)


def test_the_documents_that_are_varied_are_good_themselves() -> None:
    text = yaml.safe_dump_all(VALID)
    result = CliRunner().invoke(app, ["render", "-o", "json", "-f", "-"], input=text)
    assert result.exit_code == 0, result.stderr
    assert len(json.loads(result.stdout)["items"]) == 6


COMMANDS = st.sampled_from(
    [("render", "-o", "json"), ("render",), ("charge", "-o", "json"), ("charge", "-o", "table")]
)


@settings(deadline=None, max_examples=120)
@given(place=st.sampled_from(PLACES), value=VALUES, command=COMMANDS)
def test_any_value_in_any_field(place: Any, value: Any, command: Any) -> None:
    number, path = place
    objects = [with_value(VALID[number], path, value), *VALID[1:]]
    ends_as_documented("\n".join(map(json.dumps, objects)).encode(), *command)


@settings(deadline=None, max_examples=100)
@given(document=VALUES, kind=st.sampled_from([None, *KINDS]), command=COMMANDS)
def test_any_document(document: Any, kind: str | None, command: Any) -> None:
    if kind is not None and isinstance(document, dict):
        document["kind"] = kind
    ends_as_documented(json.dumps(document).encode(), *command)


TOKENS = st.sampled_from(
    [
        "kind: Pod\n",
        "- ",
        "{",
        "}",
        "&a ",
        "*a",
        "<<: ",
        "!!int ",
        "!!set ",
        "? ",
        "\t",
        "---\n",
        "'",
    ]
)


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=20) | st.lists(TOKENS, max_size=8).map(lambda t: "".join(t).encode()))
def test_any_text(text: bytes) -> None:
    ends_as_documented(text, "render")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("kind: Pod\na: &a [*a]", "nested deeper than", id="a value inside itself"),
        pytest.param(
            "kind: Pod\na: &a [x,x]\n"
            + "".join(
                f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]\n"
                for n in range(9)
            ),
            "its aliases mean more than",
            id="a short text that means billions of values",
        ),
        pytest.param("kind: Pod\na: .inf", "a: inf is not a number that JSON has", id="infinity"),
        pytest.param("kind: Pod\na: 0x" + "f" * 20, "more than 64 bits", id="a long number"),
        pytest.param("kind: Pod\na: !!set {b}", "a set is not a value", id="a set"),
        pytest.param("kind: Pod\na: {null: b}", "neither text nor number", id="no key"),
        pytest.param("kind: Pod\na: !!bool x", "not YAML", id="a tag that does not fit"),
        pytest.param("[" * 3000, "nested too deeply", id="deep"),
        pytest.param("kind: Pod\na: " + "[" * 150 + "]" * 150, "nested deeper", id="too deep"),
    ],
)
def test_what_json_can_not_say_is_a_fault_of_the_file(text: str, said: str) -> None:
    result = CliRunner().invoke(app, ["render", "-f", "-"], input=text)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: standard input: ")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_line_stays_one_line_whatever_a_name_holds() -> None:
    odd = pod(name="a\nerror: b\x1b[2J")
    result = CliRunner().invoke(app, ["charge", "-o", "table", "-f", "-"], input=json.dumps(odd))
    assert result.exit_code == 0
    assert "warning: ml/a\\nerror: b\\x1b[2J: no policy" in result.stderr
    assert "\x1b" not in result.output

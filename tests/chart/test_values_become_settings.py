"""The chart and the processes must mean the same by the same value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from builders import CERTIFICATE
from chart_rendering import NAMESPACE, Object, of_kind, refusal, render, rendered_text, settings
from devcluster.installation import CHART
from gpumem_operator.api.values import Values

CHANGED: dict[str, Any] = {
    "memoryResource": "example.com/memory",
    "exclusiveResources": ["nvidia.com/gpu"],
    "foreignManagers": ["HAMi", "KAI", "RunAI"],
    "ignoredNamespaces": ["other"],
    "resourceClaims": "Refuse",
    "gpuDeviceClasses": ["example.com"],
    "sidecar": {
        "image": "example.com/sidecar:2",
        "pullPolicy": "Always",
        "toolkitNVML": "Enabled",
        "runAsUser": 1000,
        "resources": {"cpu": "1", "memory": "1Gi"},
        "shimResources": {"cpu": "2", "memory": "2Gi"},
    },
    "monitoring": {"mode": "NodeAgent"},
    "scheduling": {"fillResource": "Enabled"},
    "driverLimits": "Enabled",
    "report": {"url": "https://example.com", "ca": CERTIFICATE},
    "runVolumeSize": "32Mi",
}


def test_the_defaults_of_the_chart_are_the_defaults_of_the_processes() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    read = {field.alias or name for name, field in Values.model_fields.items()}

    assert Values.model_validate({k: v for k, v in defaults.items() if k in read}) == Values()
    assert read <= defaults.keys(), "values.yaml leaves out what the processes read"


def lists(values: dict[str, Any], *path: str) -> Iterator[tuple[str, ...]]:
    """Where the values have a list."""
    for key, value in values.items():
        if isinstance(value, list):
            yield (*path, key)
        elif isinstance(value, dict):
            yield from lists(value, *path, key)


@pytest.mark.parametrize(
    "path", [*lists(yaml.safe_load((CHART / "values.yaml").read_text()))], ids=".".join
)
def test_a_list_that_null_takes_away_is_an_empty_one(path: tuple[str, ...]) -> None:
    def given(value: object) -> list[Object]:
        for key in reversed(path):
            value = {key: value}
        assert isinstance(value, dict)
        value["agent"] = {"enabled": True} | value.get("agent", {})
        return render(value)

    assert given(None) == given([])


def test_a_large_user_id_stays_a_whole_number() -> None:
    """OpenShift's have ten digits, which Helm writes as 1.0007e+09 where nobody minds."""
    text = rendered_text({"operator": {"runAsUser": 1000700000}})
    assert text.count("runAsUser: 1000700000") == 3
    assert "e+09" not in text


def test_every_value_that_the_processes_read_reaches_them() -> None:
    assert CHANGED.keys() == {f.alias or n for n, f in Values.model_fields.items()}

    # Without agents nobody would measure in mode NodeAgent, and Helm refuses that.
    given = settings(render(CHANGED | {"agent": {"enabled": True}}))

    expected = CHANGED | {"ignoredNamespaces": ["other", NAMESPACE]}
    assert Values.model_validate(given) == Values.model_validate(expected)
    assert Values.model_validate(given) != Values()


def test_the_processes_take_the_settings_strictly_so_nothing_else_may_be_in_them() -> None:
    assert settings(render()).keys() == {f.alias or n for n, f in Values.model_fields.items()}


def test_by_null_the_cluster_chooses_the_users() -> None:
    manifests = render({"sidecar": {"runAsUser": None}, "operator": {"runAsUser": None}})

    assert Values.model_validate(settings(manifests)).sidecar.run_as_user is None
    pods = [one["spec"]["template"]["spec"] for one in of_kind(manifests, "Deployment", "Job")]
    assert len(pods) == 3
    for pod in pods:
        assert pod["securityContext"] == {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }


def test_a_user_is_written_in_full() -> None:
    user = 1000700000
    manifests = render({"sidecar": {"runAsUser": user}, "operator": {"runAsUser": user}})

    assert Values.model_validate(settings(manifests)).sidecar.run_as_user == user


def test_the_release_itself_is_always_ignored() -> None:
    ignored = settings(render())["ignoredNamespaces"]

    assert ignored == [*Values().ignored_namespaces, NAMESPACE]


def test_every_value_is_documented_where_it_stands() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    # What is inside of `resources` is Kubernetes' own, and explained as a whole.
    keys = [index for index, line in enumerate(lines) if re.match(r"(  )?[A-Za-z]+:", line)]

    assert [lines[i] for i in keys if not lines[i - 1].lstrip().startswith("#")] == []


@pytest.mark.parametrize(
    ("values", "said"),
    [
        pytest.param({"webhok": {}}, "webhok", id="an unknown key"),
        pytest.param({"webhook": {"replica": 3}}, "replica", id="an unknown key further down"),
        pytest.param({"resourceClaims": "Deny"}, "resourceClaims", id="an unknown choice"),
        pytest.param({"webhook": {"url": "http://x"}}, "url", id="a webhook without TLS"),
        pytest.param({"memoryResource": "memory"}, "memoryResource", id="a resource of no domain"),
        pytest.param({"operator": {"runAsUser": 0}}, "runAsUser", id="root"),
        pytest.param({"webhook": {"replicas": 0}}, "replicas", id="no webhook at all"),
        pytest.param(
            {"guard": {"breakGlassGroups": ["a' || true"]}}, "breakGlassGroups", id="a group of CEL"
        ),
        pytest.param(
            {"operator": {"deploy": False}}, "webhook.url is empty", id="no webhook anywhere"
        ),
        pytest.param(
            {"certificates": {"mode": "Provided"}}, "certificates.", id="provided, but nothing is"
        ),
        pytest.param(
            {"certificates": {"mode": "Provided", "secretName": "mine"}},
            "certificates.caBundle is empty",
            id="provided without a CA",
        ),
    ],
)
def test_helm_refuses(values: dict[str, Any], said: str) -> None:
    assert said in refusal(values)

"""Whatever a process would refuse when it starts, Helm refuses before anything is installed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from api.objects import with_field
from chart_rendering import refusal
from devcluster.installation import CHART
from gpumem_operator.api.values import Values
from gpumem_operator.settings import SettingsError, load_values

Schema = Mapping[str, Any]

SCHEMA: Schema = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())

BAD: dict[str, Any] = {
    "memoryResource": "memory",
    "exclusiveResources.0": "nvidia.com/gpu/x",
    "ignoredNamespaces.0": "Bad_Name",
    "foreignManagers.0": "Kueue",
    "resourceClaims": "Deny",
    "gpuDeviceClasses.0": "GPU X",
    "sidecar.image": "an image",
    "sidecar.pullPolicy": "Sometimes",
    "sidecar.toolkitNVML": True,
    "sidecar.runAsUser": 0,
    "sidecar.resources.cpu": "0",
    "sidecar.resources.memory": "lots",
    "sidecar.shimResources.cpu": "much",
    "sidecar.shimResources.memory": "1Ki",
    "monitoring.mode": "Agent",
    "scheduling.fillResource": True,
    "driverLimits": "On",
    "report.url": "http://reports.example",
    "report.ca": "pem",
    "runVolumeSize": "0Mi",
    "global": "x",
    "fullnameOverride": "Upper",
    "crds.install": "yes",
    "operator.deploy": "no",
    "operator.image": "",
    "operator.pullPolicy": "Sometimes",
    "operator.imagePullSecrets.0.name": "A Secret",
    "operator.runAsUser": "nobody",
    "operator.nodeSelector.zone": "in the cellar",
    "operator.tolerations.0.key": 1,
    "operator.tolerations.0.operator": "Maybe",
    "operator.tolerations.0.value": "a b",
    "operator.tolerations.0.effect": "NoWay",
    "operator.tolerations.0.tolerationSeconds": "60s",
    "operator.priorityClassName": "Very High",
    "webhook.replicas": 0,
    "webhook.hostNetwork": "true",
    "webhook.port": 443,
    "webhook.healthPort": "8081",
    "webhook.url": "https://HOST:PORT",
    "webhook.resources.requests.cpu": "much",
    "webhook.resources.limits.memory": "256MB",
    "controller.replicas": "two",
    "controller.resources.requests.cpu": -1,
    "controller.resources.limits.memory": "lots",
    "enforcement.deletePods": "true",
    "scaling.targets.0.group": "Engines",
    "scaling.targets.0.resource": "engines/scale",
    "metrics.annotations": "true",
    "metrics.prometheusRule.enabled": "true",
    "metrics.prometheusRule.labels.release": "a b",
    "metrics.podMonitor.enabled": "true",
    "metrics.podMonitor.labels.release": True,
    "metrics.podMonitor.interval": "often",
    "agent.enabled": "true",
    "agent.driver.from": "Host",
    "agent.driver.runtimeClassName": "NVIDIA",
    "agent.driver.libraryPath": "lib",
    "agent.readsLimitsOf.0": "JAX",
    "agent.actions.0": "Evict",
    "agent.cgroupFolder": "sys",
    "agent.nodeSelector.gpu": True,
    "agent.tolerations.0.key": 1,
    "agent.tolerations.0.operator": "Maybe",
    "agent.tolerations.0.value": "a b",
    "agent.tolerations.0.effect": "NoWay",
    "agent.tolerations.0.tolerationSeconds": "60s",
    "agent.priorityClassName": "Very High",
    "agent.updateStrategy.type": "Recreate",
    "agent.updateStrategy.rollingUpdate.maxUnavailable": "most",
    "agent.updateStrategy.rollingUpdate.maxSurge": "101%",
    "agent.intervalSeconds": 0,
    "agent.kubeletFolder": "/var/lib/kubelet/",
    "agent.resources.cpu": "much",
    "agent.resources.memory": "lots",
    "certificates.mode": "Auto",
    "certificates.secretName": "A Secret",
    "certificates.caBundle": "pem",
    "isolation.by": "Nobody",
    "guard.breakGlassGroups.0": "a' || true",
    "guard.podRunnerGroups.0": "a group",
}
"""One wrong example for every value that the chart has."""


def resolved(schema: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    found: Schema = SCHEMA["definitions"][schema["$ref"].removeprefix("#/definitions/")]
    return found


def leaves(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every value that the schema has; of a list and of a map with free keys the first entry."""
    schema = resolved(schema)
    inner = dict(schema.get("properties", {}))
    if "items" in schema:
        inner = {"0": schema["items"]}
    if not inner:
        yield path, schema
    for name, one in inner.items():
        yield from leaves(one, f"{path}.{name}" if path else name)


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """One document with all these, by their paths."""
    root: dict[str, Any] = {}
    for path, value in values.items():
        at: Any = root
        *above, last = path.split(".")
        for name in above:
            at = at.setdefault(name, {})
        at[last] = value
    return {name: _with_lists(one) for name, one in root.items()}


def _with_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value.keys() == {"0"}:
        return [_with_lists(value["0"])]
    return {name: _with_lists(one) for name, one in value.items()}


def test_helm_names_every_wrong_value() -> None:
    said = refusal(nested(BAD))
    named = set(re.findall(r"at '/([^']+)'", said))

    assert {path.replace(".", "/") for path in BAD} - named == set()


def test_there_is_a_wrong_example_of_every_value() -> None:
    free = {"webhook.resources.requests", "webhook.resources.limits", "controller.resources.limits"}
    free |= {"controller.resources.requests", "agent.resources", "operator.nodeSelector"}
    free |= {"agent.nodeSelector", "metrics.prometheusRule.labels", "metrics.podMonitor.labels"}
    for path, _ in leaves(SCHEMA):
        tried = [one for one in BAD if one == path or (path in free and one.startswith(path))]
        assert tried, f"{path} has no wrong example"


def test_no_text_is_taken_as_it_comes() -> None:
    """A number or a switch has a kind; a text needs a form, a choice, or a length."""
    for path, schema in leaves(SCHEMA):
        if "string" in schema.get("type", ()):
            assert {"pattern", "enum", "maxLength"} & schema.keys(), f"{path} takes any text"


def texts(pattern: str) -> st.SearchStrategy[str]:
    return st.from_regex(pattern.removeprefix("^").removesuffix("$"), fullmatch=True)


def taken(schema: Schema) -> st.SearchStrategy[Any]:
    """Values of one leaf that Helm takes."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    each: dict[str, Any] = {
        "string": texts(schema.get("pattern", ".*")),
        "integer": st.integers(schema.get("minimum"), schema.get("maximum")),
        "null": st.none(),
    }
    found = st.one_of([each[kind] for kind in kinds])
    return found.filter(Draft7Validator(schema).is_valid)


READ = {field.alias or name for name, field in Values.model_fields.items()}
READ_LEAVES = {path: leaf for path, leaf in leaves(SCHEMA) if path.partition(".")[0] in READ}


@pytest.mark.parametrize("path", READ_LEAVES)
@hypothesis.settings(max_examples=25)
@given(data=st.data())
def test_the_processes_take_whatever_helm_takes(path: str, data: st.DataObject) -> None:
    value = data.draw(taken(READ_LEAVES[path]))
    Values.model_validate(nested({path: value}))


@pytest.mark.parametrize("path", READ_LEAVES)
def test_the_processes_refuse_the_same_in_a_sentence(path: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump(nested({path: BAD[path]})))

    with pytest.raises(SettingsError) as refused:
        load_values(file)

    assert f"{path}: " in str(refused.value)
    assert "pattern" not in str(refused.value)


def test_the_defaults_are_taken() -> None:
    Draft7Validator(SCHEMA).validate(DEFAULTS)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("sidecar.resources.cpu", "0.5"),
        ("sidecar.resources.cpu", "1"),
        ("sidecar.resources.memory", "1.5Gi"),
        ("sidecar.resources.memory", "0.125Gi"),
        ("sidecar.resources.memory", "134217728"),
        ("runVolumeSize", 16777216),
        ("runVolumeSize", "0.5Gi"),
        ("report.url", "https://[fd00::1]:9443/v1/reports"),
        ("controller.resources.limits", {"memory": "1e9", "cpu": 2, "nvidia.com/x": 1}),
        ("webhook.url", "https://127.0.0.1:9443/"),
        ("sidecar.image", "registry.example:5000/team/sidecar:1.0@sha256:" + "0" * 64),
        ("agent.updateStrategy", {"type": "OnDelete"}),
    ],
)
def test_what_people_write_is_taken(path: str, value: object) -> None:
    Draft7Validator(SCHEMA).validate(with_field(DEFAULTS, path, value))

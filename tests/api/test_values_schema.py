"""Helm refuses values that no process would understand, before anything is installed."""

import json
from copy import deepcopy
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator, ValidationError, validate

from api.objects import with_field
from gpumem_operator.api.values import Values
from gpumem_operator.api.values_schema import merged, values_schema
from gpumem_operator.cli.generate import CHART, REPOSITORY

DEFAULTS: dict[str, Any] = Values().model_dump(mode="json", by_alias=True)
STORED = json.loads((REPOSITORY / CHART / "values.schema.json").read_text())


def test_it_is_a_schema_of_draft_7() -> None:
    Draft7Validator.check_schema(values_schema())
    assert values_schema()["$schema"] == "http://json-schema.org/draft-07/schema#"


def test_it_takes_the_defaults_of_the_models_and_those_of_the_chart() -> None:
    validate(DEFAULTS, values_schema({}))
    validate(yaml.safe_load((REPOSITORY / CHART / "values.yaml").read_text()), STORED)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("memoryResource", "memory"),
        ("monitoring.mode", "Agent"),
        ("monitoring.modus", "Sidecar"),
        ("sidecar.runAsUser", 0),
        ("sidecar.runAsUser", "65532"),
        ("sidecar.image", ""),
        ("sidecar.resources.gpu", "1"),
        ("scheduling.fillResource", True),
        ("exclusiveResources", "nvidia.com/gpu"),
        ("foreignManagers", ["Kueue"]),
        ("runVolumeSize", "16MB"),
        ("runVolumeSize", 0),
        ("memoryresource", "nvidia.com/memory"),
    ],
)
def test_it_refuses_what_is_misspelled_or_of_the_wrong_kind(path: str, value: object) -> None:
    with pytest.raises(ValidationError):
        validate(with_field(DEFAULTS, path, value), values_schema({}))


def test_without_a_part_kept_by_hand_the_values_of_the_chart_alone_are_let_through() -> None:
    validate({**DEFAULTS, "webhook": {"replicas": 2}}, values_schema())


def test_the_part_kept_by_hand_adds_values_at_every_depth() -> None:
    by_hand = {
        "properties": {
            "webhook": {"type": "object"},
            "sidecar": {"properties": {"extra": {"type": "string"}}},
        }
    }
    schema = values_schema(by_hand)
    values = deepcopy(DEFAULTS) | {"webhook": {}, "global": {}}
    values["sidecar"]["extra"] = "yes"
    validate(values, schema)
    with pytest.raises(ValidationError):
        validate({**values, "webhok": {}}, schema)


def test_merging_changes_neither_side() -> None:
    left, right = {"a": {"b": 1}}, {"a": {"c": 2}, "d": [3]}
    assert merged(left, right) == {"a": {"b": 1, "c": 2}, "d": [3]}
    assert (left, right) == ({"a": {"b": 1}}, {"a": {"c": 2}, "d": [3]})


def test_people_find_every_value_described() -> None:
    def undescribed(path: str, schema: dict[str, Any]) -> list[str]:
        return [
            name
            for key, inner in schema.get("properties", {}).items()
            for name in (
                *([] if inner.get("description") or key == "global" else [f"{path}.{key}"]),
                *undescribed(f"{path}.{key}", inner),
            )
        ]

    assert undescribed("", values_schema({})) == []

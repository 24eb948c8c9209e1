"""The JSON schema of the chart's values, so that Helm refuses a misspelled one.

The part that Python reads is generated; what concerns the chart alone is kept by hand and merged.
"""

from collections.abc import Mapping
from typing import Any, Final

from gpumem_operator.api import forms
from gpumem_operator.api.schema import Schema, everywhere, json_schema
from gpumem_operator.api.values import Values

_DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_EXACT_NUMBERS: Final = 2**53 - 1
"""Helm reads numbers as floats, which are exact up to here."""
_RESOURCES: Final = r"^(cpu|memory|ephemeral-storage|hugepages-[0-9]+[KMGT]i|[^/]+/[^/]+)$"
_LABELS: Final[Schema] = {"type": "object", "additionalProperties": {"$ref": "#/definitions/label"}}
_AMOUNTS: Final[Schema] = {
    "type": "object",
    "additionalProperties": False,
    "patternProperties": {_RESOURCES: {"$ref": "#/definitions/quantity"}},
}
DEFINITIONS: Final[Schema] = {
    "quantity": {"type": ["string", "number"], "pattern": forms.QUANTITY.pattern, "minimum": 0},
    "amounts": _AMOUNTS,
    "requestsAndLimits": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "requests": {"$ref": "#/definitions/amounts"},
            "limits": {"$ref": "#/definitions/amounts"},
        },
    },
    "some": {"type": ["integer", "string"], "minimum": 0, "pattern": "^(100|[1-9]?[0-9])%$"},
    "label": {"type": "string", "maxLength": 63, "pattern": forms.LABEL.pattern},
    "labels": _LABELS,
    "name": {"type": "string", "maxLength": 253, "pattern": forms.NAME.pattern},
    "optionalName": {"type": "string", "maxLength": 253, "pattern": forms.OPTIONAL_NAME.pattern},
    "image": {"type": "string", "pattern": forms.IMAGE.pattern},
    "webhook": {"type": "string", "pattern": forms.WEBHOOK.pattern},
    "certificates": {"type": "string", "pattern": forms.CERTIFICATES.pattern},
    "tolerations": {
        "type": "array",
        "items": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "key": {"type": "string", "maxLength": 316},
                "operator": {"enum": ["Exists", "Equal"]},
                "value": {"$ref": "#/definitions/label"},
                "effect": {"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
                "tolerationSeconds": {"type": "integer"},
            },
        },
    },
}
"""What `values.extra.schema.json` names, so that each form of text is written once."""


def values_schema(by_hand: Mapping[str, Any] | None = None) -> Schema:
    """The schema of all values; open at the top where there is no part that is kept by hand.

    Helm itself sets `global` in every chart, so it is always known.
    """
    generated = everywhere(json_schema(Values), _plain)
    generated["properties"] = {**generated["properties"], "global": {"type": "object"}}
    if by_hand is None:
        generated["additionalProperties"] = True
    generated["definitions"] = DEFINITIONS
    return {"$schema": _DRAFT} | merged(generated, by_hand or {})


def merged(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    """Both schemas in one: maps are merged at every depth, elsewhere the right one wins."""
    result = dict(left)
    for key, value in right.items():
        both_maps = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both_maps else value
    return result


def _plain(schema: Schema) -> Schema:
    plain = {key: value for key, value in schema.items() if not key.startswith("x-kubernetes")}
    if plain.pop("anyOf", None):
        # An amount of bytes. With `type` and not `anyOf`, Helm says which of the two is wrong.
        plain["type"] = ["integer", "string"]
        plain["minimum"] = forms.LEAST_VOLUME_BYTES
        plain["maximum"] = _EXACT_NUMBERS
        plain["pattern"] = forms.VOLUME_SIZE.pattern
    return plain

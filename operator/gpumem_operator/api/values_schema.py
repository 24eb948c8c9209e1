"""The JSON schema of the chart's values, so that Helm refuses a misspelled one.

The part that Python reads is generated; what concerns the chart alone is kept by hand and merged.
"""

from collections.abc import Mapping
from typing import Any, Final

from gpumem_operator.api.schema import Schema, everywhere, json_schema
from gpumem_operator.api.values import Values

_DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_QUANTITY: Final = r"^[0-9]+(\.[0-9]+)?([KMGTPE]i|[kMGTPE])?$"


def values_schema(by_hand: Mapping[str, Any] | None = None) -> Schema:
    """The schema of all values; open at the top where there is no part that is kept by hand.

    Helm itself sets `global` in every chart, so it is always known.
    """
    generated = everywhere(json_schema(Values), _plain)
    generated["properties"] = {**generated["properties"], "global": {"type": "object"}}
    if by_hand is None:
        generated["additionalProperties"] = True
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
    if "x-kubernetes-int-or-string" in schema:
        plain["anyOf"] = [
            {"type": "integer", "minimum": 1},
            {"type": "string", "pattern": _QUANTITY},
        ]
    return plain

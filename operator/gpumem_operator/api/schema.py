"""Structural OpenAPI v3 schemas, which the API server takes, from the models.

pydantic writes JSON schema 2020-12, of which the server refuses much: references, null types,
closed objects, constraints on keys. Everything here removes or rewrites, nothing is added by hand.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from gpumem_operator.api.quantity import format_bytes

Schema = dict[str, Any]

_REWRITTEN: Final = frozenset({"additionalProperties", "const", "propertyNames"})
"""What the server refuses, or takes in another form only."""
_FIRST: Final = ("description", "type", "format", "enum", "default", "required")


class _WithoutNull(GenerateJsonSchema):
    """Optional fields are simply not required.

    `nullable: true` would keep a null in the stored object, which `has()` in a rule then takes for
    a value; without it the server drops the null, and absent is the only way to say nothing.
    """

    def nullable_schema(self, schema: Any) -> Schema:
        return self.generate_inner(schema["schema"])

    def get_default_value(self, schema: Any) -> Any:
        default = super().get_default_value(schema)
        # In full: the server tries the rules of an object on its default as it is written.
        if isinstance(default, BaseModel):
            return default.model_dump(mode="json", by_alias=True, exclude_none=True)
        return default

    def default_schema(self, schema: Any) -> Schema:
        described = super().default_schema(schema)
        default = described.get("default", ...)
        if default is None:
            del described["default"]
        elif "x-kubernetes-int-or-string" in described:
            described["default"] = format_bytes(default)
        return described


def json_schema(model: type[BaseModel]) -> Schema:
    """The model in JSON schema, references and titles resolved."""
    raw = model.model_json_schema(by_alias=True, schema_generator=_WithoutNull)
    return _resolved(raw, raw.get("$defs", {}))


def structural_schema(model: type[BaseModel], *, defaults: bool = True) -> Schema:
    """The model as the API server takes it; a status is written without defaults.

    A default in a status would turn "not known yet" into a number that nobody measured.
    """
    schema = json_schema(model)
    edit = _structural if defaults else lambda one: _without_default(_structural(one))
    return everywhere(schema, edit)


def everywhere(schema: Schema, edit: Callable[[Schema], Schema]) -> Schema:
    """The schema with `edit` done to it and to every schema inside it, the inner ones first.

    `properties` is a map of schemas and not a schema: a field may be called `default`.
    """
    copy = dict(schema)
    if "properties" in copy:
        copy["properties"] = {
            name: everywhere(inner, edit) for name, inner in copy["properties"].items()
        }
    for place in ("items", "additionalProperties"):
        if isinstance(copy.get(place), dict):
            copy[place] = everywhere(copy[place], edit)
    return edit(copy)


def _resolved(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """The schema without references; what stands beside a reference wins over what it names."""
    if "$ref" in schema:
        named = definitions[schema["$ref"].removeprefix("#/$defs/")]
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _resolved({**named, **beside}, definitions)
    copy = {key: value for key, value in schema.items() if key not in ("$defs", "title")}
    if "properties" in copy:
        copy["properties"] = {
            name: _resolved(inner, definitions) for name, inner in copy["properties"].items()
        }
    for place in ("items", "additionalProperties"):
        if isinstance(copy.get(place), dict):
            copy[place] = _resolved(copy[place], definitions)
    if "description" in copy:
        copy["description"] = " ".join(copy["description"].split())
    return copy


def _structural(schema: Schema) -> Schema:
    copy = {key: value for key, value in schema.items() if key not in _REWRITTEN}
    if isinstance(schema.get("additionalProperties"), dict):
        copy["additionalProperties"] = schema["additionalProperties"]
    if "const" in schema:
        copy["enum"] = [schema["const"]]
    if copy.get("type") == "integer":
        copy["format"] = "int64"
    if copy.get("type") == "array":
        copy.setdefault("x-kubernetes-list-type", "atomic")
    first = {key: copy[key] for key in _FIRST if key in copy}
    return first | copy


def _without_default(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key != "default"}

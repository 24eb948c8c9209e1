"""What reviewers of Kubernetes APIs look for, on every field of both kinds."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpumem_operator.api.crd import KINDS, root_schema
from gpumem_operator.api.schema import Schema


@dataclass(frozen=True)
class Found:
    """A field, or an entry of a list or map (`entry`), with its path."""

    path: str
    schema: Schema
    required: bool
    entry: bool = False

    @property
    def description(self) -> str:
        return str(self.schema.get("description", ""))


def fields_of(path: str, schema: Schema) -> Iterator[Found]:
    for name, field in schema.get("properties", {}).items():
        yield Found(f"{path}.{name}", field, name in schema.get("required", ()))
        yield from fields_of(f"{path}.{name}", field)
    for place in ("items", "additionalProperties"):
        if place in schema:
            yield Found(f"{path}[]", schema[place], required=True, entry=True)
            yield from fields_of(f"{path}[]", schema[place])


def all_fields(part: str) -> list[Found]:
    return [
        found
        for kind in KINDS
        for found in fields_of(f"{kind.name}.{part}", root_schema(kind)["properties"][part])
    ]


SPEC = all_fields("spec")
STATUS = all_fields("status")


def is_bounded(schema: Schema) -> bool:
    if "x-kubernetes-int-or-string" in schema:
        return "maxLength" in schema
    match schema["type"]:
        case "string":
            return "maxLength" in schema or "enum" in schema
        case "array":
            return "maxItems" in schema
        case "object":
            return "maxProperties" in schema or "properties" in schema
    return True


def says_what_absence_means(found: Found) -> bool:
    if found.required:
        return True
    words = ("Default:", "Absent:") if "default" in found.schema else ("Absent:",)
    return any(word in found.description for word in words)


def tells_its_default(found: Found) -> bool:
    default = found.schema.get("default")
    if not isinstance(default, int | str) or default == "":
        return True
    return f"Default: {default}." in found.description.replace('"', "")


def test_there_are_fields_to_look_at() -> None:
    assert len(SPEC) > 100
    assert len(STATUS) > 50


def test_every_field_is_described_in_a_sentence() -> None:
    assert [
        found.path
        for found in SPEC + STATUS
        if not found.entry and not found.description.endswith(".")
    ] == []


def test_strings_lists_and_maps_are_bounded() -> None:
    assert [found.path for found in SPEC + STATUS if not is_bounded(found.schema)] == []


def test_nothing_is_a_float_or_a_boolean() -> None:
    # Floats do not survive every client, and a boolean can not grow a third value.
    wrong = ("number", "boolean")
    assert [found.path for found in SPEC + STATUS if found.schema.get("type") in wrong] == []


def test_the_values_of_enums_are_in_camel_case() -> None:
    values = {value for found in SPEC + STATUS for value in found.schema.get("enum", ())}
    assert "Active" in values
    assert [value for value in values if not (value[0].isupper() and value.isalnum())] == []


def test_no_regular_expression_is_shown_to_people() -> None:
    assert [found.path for found in SPEC + STATUS if "pattern" in found.schema] == []


def test_every_list_says_how_it_is_merged() -> None:
    lists = [found for found in SPEC + STATUS if found.schema.get("type") == "array"]
    assert [found.path for found in lists if "x-kubernetes-list-type" not in found.schema] == []


def test_every_optional_field_says_what_absence_means() -> None:
    assert [found.path for found in SPEC if not says_what_absence_means(found)] == []


def test_a_short_default_stands_in_the_description_as_it_is() -> None:
    assert [found.path for found in SPEC if not tells_its_default(found)] == []


def test_a_status_has_no_defaults_because_unknown_is_not_zero() -> None:
    assert [found.path for found in STATUS if "default" in found.schema] == []


def test_amounts_in_a_status_name_their_unit() -> None:
    amounts = [found for found in STATUS if found.path.lower().endswith("bytes")]
    assert amounts
    for found in amounts:
        assert found.schema["format"] == "int64", found.path
        assert "in bytes" in found.description, found.path


def test_no_column_of_kubectl_get_shows_a_number_of_bytes() -> None:
    columns = [column for kind in KINDS for column in kind.columns]
    assert [column.name for column in columns if column.path.endswith("Bytes")] == []

"""The API for people to read: one table for each object, from the same schema as the CRDs."""

import json
from collections.abc import Iterator
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.api.allocator_rules import ALLOCATOR_RULES
from gpumem_operator.api.crd import KINDS, Kind, root_schema
from gpumem_operator.api.pytorch_allocator import KEYS, expected, format_version
from gpumem_operator.api.rules import VALIDATIONS
from gpumem_operator.api.schema import Schema

_ABOUT_KEYS: Final = frozenset(rule.as_validation()["message"] for rule in ALLOCATOR_RULES)
"""These stand in a table of their own."""


def reference() -> str:
    """`docs/reference/api.md`, without the line that says what made it."""
    told: dict[str, str] = {}
    blocks = [
        f"# API reference: `{names.API_VERSION}`",
        "A quantity is an amount of memory as in Kubernetes: `8Gi`, `512Mi`, or whole bytes. Where "
        "a field is left out, its default counts. `kubectl explain gmp.spec` shows the same words.",
        *(block for kind in KINDS for block in _kind(kind, told)),
        *_allocator_keys(),
    ]
    return "\n\n".join(blocks) + "\n"


def _kind(kind: Kind, told: dict[str, str]) -> Iterator[str]:
    schema = root_schema(kind)
    yield f"## {kind.name}"
    scope = "in a namespace" if kind.scope == "Namespaced" else "for the whole cluster"
    yield (
        f"{kind.description} One object {scope}; short name `{kind.short}`, and "
        f"`kubectl get {names.CATEGORY}` shows both kinds."
    )
    yield from _rules(schema)
    for part in ("spec", "status"):
        yield from _objects(part, schema["properties"][part], told, kind=kind.name)


def _objects(path: str, schema: Schema, told: dict[str, str], *, kind: str) -> Iterator[str]:
    """The table of one object, then those inside it; one that was told before is only named."""
    content = json.dumps(schema["properties"])
    if content in told:
        yield f"`{path}`: as {told[content]}."
        return
    told[content] = f"`{path}` of {kind}"
    yield f"### `{path}`"
    yield schema["description"]
    rows = [_row(name, field, schema) for name, field in schema["properties"].items()]
    yield "\n".join(["| field | type | default | meaning |", "|---|---|---|---|", *rows])
    yield from _rules(schema)
    for name, field in schema["properties"].items():
        if "properties" in field:
            yield from _objects(f"{path}.{name}", field, told, kind=kind)
        elif "properties" in field.get("items", {}):
            yield from _objects(f"{path}.{name}[]", field["items"], told, kind=kind)


def _row(name: str, field: Schema, parent: Schema) -> str:
    default = "required" if name in parent.get("required", ()) else _default(field)
    cells = [f"`{name}`", _type(field), default, field["description"]]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(field: Schema) -> str:
    if "default" not in field:
        return "absent"
    default = field["default"]
    if isinstance(default, dict):
        return "as its fields" if "properties" in field else "none"
    if isinstance(default, list):
        return ", ".join(f"`{entry}`" for entry in default) or "none"
    return f"`{default}`" if default != "" else "empty"


def _type(field: Schema) -> str:
    if "x-kubernetes-int-or-string" in field:
        return "quantity"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    match field["type"]:
        case "array":
            return f"list of at most {field['maxItems']}: {_type(field['items'])}"
        case "object" if "additionalProperties" in field:
            return (
                f"map of at most {field['maxProperties']}: {_type(field['additionalProperties'])}"
            )
        case "integer":
            return f"integer{_bounds(field)}"
        case other:
            return str(other)


def _bounds(field: Schema) -> str:
    match field.get("minimum"), field.get("maximum"):
        case None, None:
            return ""
        case least, None:
            return f", at least {least}"
        case least, most:
            return f", {least} to {most}"
    return ""


def _rules(schema: Schema) -> Iterator[str]:
    entries: list[dict[str, Any]] = schema.get(VALIDATIONS, [])
    sentences = [entry["message"] for entry in entries if entry["message"] not in _ABOUT_KEYS]
    if sentences:
        yield "Refused with:\n\n" + "\n".join(f"- {sentence}" for sentence in sentences)


def _allocator_keys() -> Iterator[str]:
    yield "## Keys of `frameworks.pytorch.allocatorConfig`"
    yield (
        "A key that PyTorch does not know, or a value that it does not take, fails every program "
        "at its first CUDA call, so both are refused here. `minVersion` must be at least the "
        "release of every key. `per_process_memory_fraction` can not be set: the limit decides it. "
        "`max_split_size_mb` must not be smaller than `large_segment_size_mb`."
    )
    rows = [
        f"| `{key}` | {format_version(spec.since)} | {expected(key)} |"
        for key, spec in KEYS.items()
    ]
    yield "\n".join(["| key | since PyTorch | value |", "|---|---|---|", *rows])

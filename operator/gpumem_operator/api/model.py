"""What all models of the API share: names in camelCase, unknown fields refused, nothing mutable.

Models say what a field means, its default and what absence means; `schema.py` turns exactly these
words into the CRDs, so that `kubectl explain` and the validation can not disagree.
"""

from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel

from gpumem_operator.api.quantity import format_bytes, parse_bytes

QUANTITY_PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

# The order integer, string is the only one that the API server takes as structural.
_QUANTITY_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "maxLength": 32,
}

Bytes = Annotated[
    int,
    BeforeValidator(parse_bytes),
    PlainSerializer(format_bytes, return_type=str),
    WithJsonSchema(_QUANTITY_SCHEMA),
]
"""An amount of memory: a quantity in YAML (8Gi), whole bytes in Python. At least 0."""

Name = Annotated[str, Field(min_length=1, max_length=253)]
LabelKey = Annotated[str, Field(min_length=1, max_length=316)]
LabelValue = Annotated[str, Field(max_length=63)]


class Model(BaseModel):
    """Base of every model: frozen, camelCase outside, unknown fields are errors.

    Objects that come from an API server are read with `extra="ignore"`, because a newer CRD may
    have stored fields that this version does not know yet.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )


def cel(rule: str, message: str, *, field: str | None = None) -> dict[str, Any]:
    """One entry of x-kubernetes-validations; `field` is the path the message is shown at."""
    entry = {"rule": rule, "message": message}
    return entry | {"fieldPath": field} if field else entry

"""What all models of the API share: names in camelCase, unknown fields refused, nothing mutable.

Models say what a field means, its default and what absence means; `schema.py` turns exactly these
words into the CRDs, so that `kubectl explain` and the validation can not disagree.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

from gpumem_operator.api.forms import DNS_LABEL, LABEL_NAME
from gpumem_operator.api.quantity import format_bytes, parse_bytes
from gpumem_operator.api.quantity_rules import POSITIVE, QUANTITY_SCHEMA
from gpumem_operator.api.rules import Rule, matching, problems_of, with_validations

LONGEST_QUANTITY = 32
"""Characters; the cost of CEL rules is estimated from it."""


def _parse_short(value: object) -> int:
    if isinstance(value, str) and len(value) > LONGEST_QUANTITY:
        raise ValueError(f"may not be more than {LONGEST_QUANTITY} bytes")
    return parse_bytes(value)


Bytes = Annotated[
    int,
    BeforeValidator(_parse_short),
    PlainSerializer(format_bytes, return_type=str),
    WithJsonSchema(QUANTITY_SCHEMA | {"maxLength": LONGEST_QUANTITY}),
]
"""An amount of memory: a quantity in YAML (8Gi), whole bytes in Python. At least 0."""

PositiveBytes = Annotated[Bytes, POSITIVE]

LABEL_KEY_PATTERN = rf"^({DNS_LABEL}(\.{DNS_LABEL})*/)?{LABEL_NAME}$"

Name = Annotated[str, Field(min_length=1, max_length=253)]
LabelKey = Annotated[
    str,
    Field(min_length=1, max_length=316),
    matching(LABEL_KEY_PATTERN, "'{self}' can not be the key of a label"),
]
LabelValue = Annotated[
    str,
    Field(max_length=63),
    matching(rf"^({LABEL_NAME})?$", "'{self}' can not be the value of a label"),
]


class Model(BaseModel):
    """Base of every model: frozen, camelCase outside, unknown fields are errors.

    Objects that come from an API server are read with `extra="ignore"`, because a newer CRD may
    have stored fields that this version does not know yet.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
    )

    rules: ClassVar[tuple[Rule, ...]] = ()
    """What must hold between the fields."""
    told_by_null: ClassVar[frozenset[str]] = frozenset()
    """Fields, as in YAML, in which a null says something else than the field's absence."""

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, fields: Any) -> Any:
        # The API server drops a null before it fills in defaults; a file must mean the same.
        if isinstance(fields, Mapping):
            kept = cls.told_by_null
            return {n: value for n, value in fields.items() if value is not None or n in kept}
        return fields

    @model_validator(mode="after")
    def _keep_rules(self) -> Self:
        if problems := problems_of(self, self.rules):
            raise ValueError("; ".join(problems))
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> dict[str, Any]:
        reference = handler(core_schema)
        schema = handler.resolve_ref_schema(reference)
        schema.update(with_validations({}, [rule.as_validation() for rule in cls.rules]))
        return reference

"""Rules of the API, each said to two judges: in CEL to the API server, in Python to files.

`kubectl apply` must refuse a bad object by itself, and the offline commands must refuse the same
object without a cluster. Both show the same sentence, which is therefore written once:

    Rule(
        cel="self.minReplicas <= self.maxReplicas",
        holds=lambda target: target.min_replicas <= target.max_replicas,
        sentence="minReplicas {minReplicas} must not exceed maxReplicas {maxReplicas}",
    )

A placeholder is a field of the object that the rule is about, by its name in YAML, or `{self}`.
Rules on a value are annotations of its type, rules between fields stand in `Model.rules`.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any, Final

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

VALIDATIONS: Final = "x-kubernetes-validations"
_PLACEHOLDER: Final = re.compile(r"\{\w+\}")


@dataclass(frozen=True)
class Shown:
    """A part of a sentence that is not simply a field: how each judge finds it."""

    cel: str
    of: Callable[[Any], str]


@dataclass(frozen=True, eq=False)  # pydantic wants a hash, and a mapping has none
class Rule:
    """What must hold of a value, and the sentence for the one who broke it."""

    cel: str
    holds: Callable[[Any], bool]
    sentence: str
    shown: Mapping[str, Shown] = field(default_factory=dict)
    """Placeholders of the sentence that are not fields."""
    at: str = ""
    """Path of the field that the server shows the sentence at. Empty: the object itself."""

    def problem(self, value: Any) -> str | None:
        """The sentence about this value, or None where the rule holds."""
        if self.holds(value):
            return None
        found = {name: self._text_of(name, value) for name in self._placeholders()}
        return self.sentence.format(**found)

    def as_validation(self) -> dict[str, str]:
        """The rule as one entry of x-kubernetes-validations."""
        # The server falls back to the message where the expression gives a line break.
        plain = _PLACEHOLDER.sub("...", self.sentence)
        entry = {"rule": self.cel, "message": plain}
        if self._placeholders():
            entry["messageExpression"] = self._as_expression()
        return entry | ({"fieldPath": self.at} if self.at else {})

    def _placeholders(self) -> list[str]:
        return [name for _, name, _, _ in Formatter().parse(self.sentence) if name]

    def _text_of(self, name: str, value: Any) -> str:
        if name in self.shown:
            return self.shown[name].of(value)
        if name == "self":
            return str(value)
        fields = value.model_dump(mode="json", by_alias=True, exclude_none=True)
        return str(fields[name])

    def _as_expression(self) -> str:
        # format() because the cost of `+` and string() grows with strings of unknown length.
        text = self.sentence.replace("%", "%%")
        arguments = []
        for name in self._placeholders():
            text = text.replace(f"{{{name}}}", "%s", 1)
            arguments.append(self._cel_of(name))
        return f"{quoted(text)}.format([{', '.join(arguments)}])"

    def _cel_of(self, name: str) -> str:
        if name in self.shown:
            return self.shown[name].cel
        return "self" if name == "self" else f"self.{name}"

    # What pydantic asks an annotation of a type for.

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def _checked(self, value: Any) -> Any:
        if (problem := self.problem(value)) is not None:
            raise ValueError(problem)
        return value

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return with_validations(handler(core), [self.as_validation()])


def with_validations(schema: dict[str, Any], entries: list[dict[str, str]]) -> dict[str, Any]:
    """The schema with further entries of x-kubernetes-validations."""
    return schema | {VALIDATIONS: [*schema.get(VALIDATIONS, []), *entries]} if entries else schema


def problems_of(model: BaseModel, rules: tuple[Rule, ...]) -> list[str]:
    """The sentences of all rules that the model breaks, in the order of the rules."""
    return [problem for rule in rules if (problem := rule.problem(model)) is not None]


def matching(pattern: str, sentence: str) -> Rule:
    """Text that fits a regular expression (`^...$`, RE2 and Python); people see the sentence."""
    compiled = re.compile(pattern)
    return Rule(
        cel=f"self.matches({quoted(pattern)})",
        holds=lambda text: compiled.fullmatch(text) is not None,
        sentence=sentence,
    )


def quoted(text: str) -> str:
    """The text as a string literal of CEL, whose escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False)

"""Label selectors as Kubernetes defines them, matched the way the API server matches them."""

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from gpumem_operator.api.model import LABEL_KEY_PATTERN, LabelKey, LabelValue, Model
from gpumem_operator.api.rules import Rule, Shown, quoted


def _wrong_keys(labels: Mapping[str, str]) -> list[str]:
    return [key for key in labels if re.fullmatch(LABEL_KEY_PATTERN, key) is None]


_KEY_FITS: Final = f"k.matches({quoted(LABEL_KEY_PATTERN)})"
_KEYS_FIT: Final = Rule(
    cel=f"self.all(k, {_KEY_FITS})",
    holds=lambda labels: not _wrong_keys(labels),
    sentence="'{key}' can not be the key of a label",
    # A rule on a map's keys can only stand on the map: the schema has no place for one on the keys.
    shown={
        "key": Shown(
            cel=f"self.filter(k, !{_KEY_FITS})[0]", of=lambda labels: _wrong_keys(labels)[0]
        )
    },
)

Labels = Annotated[dict[str, LabelValue], Field(max_length=32), _KEYS_FIT]


class Requirement(Model):
    """One expression of a label selector."""

    key: LabelKey
    """The label key that the expression is about. Required."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the label is compared. NotIn and DoesNotExist also match objects without the
    label. Required."""
    values: Annotated[list[LabelValue], Field(max_length=64)] = []
    """Values for In and NotIn (at least one); must be empty for Exists and DoesNotExist.
    Default: none."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!(self.operator in ['In', 'NotIn']) || self.values.size() > 0",
            holds=lambda one: one.operator not in ("In", "NotIn") or bool(one.values),
            sentence="operator {operator} needs at least one entry in values",
        ),
        Rule(
            cel="!(self.operator in ['Exists', 'DoesNotExist']) || self.values.size() == 0",
            holds=lambda one: one.operator not in ("Exists", "DoesNotExist") or not one.values,
            sentence="operator {operator} takes no values",
        ),
    )

    def matches(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "In":
                return self.key in labels and labels[self.key] in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels


class LabelSelector(Model):
    """Selects objects by labels; all parts must hold. An empty selector selects everything."""

    match_labels: Labels = {}
    """Labels that must have exactly these values. Default: none."""
    match_expressions: Annotated[list[Requirement], Field(max_length=32)] = []
    """Further expressions that must hold. Default: none."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            expression.matches(labels) for expression in self.match_expressions
        )

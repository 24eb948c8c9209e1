"""Label selectors as Kubernetes defines them, matched the way the API server matches them."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from gpumem_operator.api.model import LabelKey, LabelValue, Model


class Requirement(Model):
    """One expression of a label selector."""

    key: LabelKey
    """The label key that the expression is about."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the label is compared. NotIn and DoesNotExist also match objects without the label."""
    values: Annotated[list[LabelValue], Field(max_length=64)] = []
    """Values for In and NotIn (at least one); must be empty for Exists and DoesNotExist."""

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

    match_labels: Annotated[dict[LabelKey, LabelValue], Field(max_length=32)] = {}
    """Labels that must have exactly these values. Default: none."""
    match_expressions: Annotated[list[Requirement], Field(max_length=32)] = []
    """Further expressions that must hold. Default: none."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            expression.matches(labels) for expression in self.match_expressions
        )

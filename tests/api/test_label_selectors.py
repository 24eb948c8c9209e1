"""A label selector means what it means everywhere else in Kubernetes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpumem_operator.api.selector import LabelSelector

LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "x", "y"]), max_size=3)


def selector(**parts: Any) -> LabelSelector:
    return LabelSelector.model_validate(parts)


def expression(operator: str, *values: str) -> LabelSelector:
    return selector(
        matchExpressions=[{"key": "team", "operator": operator, "values": list(values)}]
    )


@given(LABELS)
def test_an_empty_selector_selects_everything(labels: dict[str, str]) -> None:
    assert selector().matches(labels)


@pytest.mark.parametrize(
    ("chooser", "labels", "matches"),
    [
        (expression("In", "a", "b"), {"team": "a"}, True),
        (expression("In", "a", "b"), {"team": "c"}, False),
        (expression("In", "a", "b"), {}, False),
        (expression("In", ""), {"team": ""}, True),
        (expression("In", ""), {}, False),
        (expression("NotIn", "a"), {"team": "a"}, False),
        (expression("NotIn", "a"), {"team": "b"}, True),
        (expression("NotIn", "a"), {}, True),
        (expression("NotIn", ""), {}, True),
        (expression("Exists"), {"team": ""}, True),
        (expression("Exists"), {"other": "a"}, False),
        (expression("DoesNotExist"), {}, True),
        (expression("DoesNotExist"), {"team": ""}, False),
    ],
)
def test_each_operator_also_where_the_label_is_missing_or_empty(
    chooser: LabelSelector, labels: dict[str, str], matches: bool
) -> None:
    assert chooser.matches(labels) is matches


@given(LABELS, LABELS)
def test_match_labels_are_all_in_the_labels(wanted: dict[str, str], labels: dict[str, str]) -> None:
    assert selector(matchLabels=wanted).matches(labels) == (wanted.items() <= labels.items())


@given(LABELS, LABELS)
def test_a_label_is_the_same_as_in_with_its_value(
    wanted: dict[str, str], labels: dict[str, str]
) -> None:
    as_expressions = [
        {"key": key, "operator": "In", "values": [value]} for key, value in wanted.items()
    ]
    assert selector(matchLabels=wanted).matches(labels) == selector(
        matchExpressions=as_expressions
    ).matches(labels)


@given(LABELS, st.lists(st.sampled_from(["x", "y", ""]), min_size=1, max_size=3))
def test_not_in_is_the_opposite_of_in(labels: dict[str, str], values: list[str]) -> None:
    assert expression("NotIn", *values).matches(labels) != expression("In", *values).matches(labels)


def test_all_parts_must_hold() -> None:
    both = selector(matchLabels={"a": "x"}, matchExpressions=[{"key": "b", "operator": "Exists"}])
    assert both.matches({"a": "x", "b": ""})
    assert not both.matches({"a": "x"})
    assert not both.matches({"b": ""})

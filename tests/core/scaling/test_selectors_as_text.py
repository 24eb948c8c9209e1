"""What a scale subresource says about its pods means what a label selector means."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpumem_operator.scaling.selector_text import parse_selector

CASES = [
    ("app=serve", {"app": "serve"}, True),
    ("app=serve", {"app": "other"}, False),
    ("app==serve,tier=gpu", {"app": "serve", "tier": "gpu"}, True),
    ("app==serve,tier=gpu", {"app": "serve"}, False),
    ("tier in (gpu, fast),app", {"app": "x", "tier": "fast"}, True),
    ("tier in (gpu,fast)", {"tier": "slow"}, False),
    ("tier notin (slow),!batch", {}, True),
    ("!batch", {"batch": ""}, False),
    ("app!=serve", {"app": "other"}, True),
    ("app!=serve", {"app": "serve"}, False),
    ("example.com/app=", {"example.com/app": ""}, True),
    ("in in (in),notin", {"in": "in", "notin": "x"}, True),
    ("", {"anything": "goes"}, True),
]


@pytest.mark.parametrize(("text", "labels", "matches"), CASES)
def test_text_is_read_as_the_api_server_writes_it(
    text: str, labels: dict[str, str], matches: bool
) -> None:
    assert parse_selector(text).matches(labels) is matches


@pytest.mark.parametrize(
    "text", ["replicas>3", "app in", "app in (a", "a b", "=x", "app=a=b", "!", "app=serve;rm"]
)
def test_what_is_no_selector_selects_nothing_silently(text: str) -> None:
    with pytest.raises(ValueError, match=r"selector|label|operator"):
        parse_selector(text)


@given(st.text(alphabet="ab,=!()<> in", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        parse_selector(text)

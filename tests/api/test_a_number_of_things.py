"""Numbers in sentences for people."""

from __future__ import annotations

import pytest

from gpumem_operator.api.count import count, named


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [
        (0, "pod", "0 pods"),
        (1, "pod", "1 pod"),
        (2, "pod", "2 pods"),
        (1, "more process", "1 more process"),
        (2, "more process", "2 more processes"),
    ],
)
def test_one_is_not_several(number: int, noun: str, said: str) -> None:
    assert count(number, noun) == said


@pytest.mark.parametrize(
    ("names", "said"),
    [("", ""), ("a", "a"), ("abc", "a, b, c"), ("abcd", "a, b, c and 1 more")],
)
def test_who_is_left_out_is_counted(names: str, said: str) -> None:
    assert named(list(names)) == said

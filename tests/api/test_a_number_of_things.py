"""Numbers in sentences for people."""

from __future__ import annotations

import pytest

from gpumem_operator.api.count import count


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

"""What others write can be shown to people: it stays one line, and no terminal obeys it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from gpumem_operator.api.printable import LONGEST, Text, one_line, printable
from gpumem_operator.api.transitions import Finding, renew_conditions

ESCAPES = "\x1b[2J\x1b]0;mine\x07\r\nroot: all is well\u202e\u2066\u200b\x9b1m\x7f\u2028"
TEXT = st.text() | st.text(st.sampled_from(ESCAPES))


@given(TEXT)
def test_where_it_comes_in_a_letter_stands_for_a_letter(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown) == len(text)
    assert [new for new, old in zip(shown, text, strict=True) if old.isprintable()] == [
        old for old in text if old.isprintable()
    ]


@given(TEXT)
def test_where_it_is_printed_nothing_is_lost(text: str) -> None:
    shown = one_line(text)
    assert shown.isprintable()
    assert one_line(shown) == shown
    if text.isprintable():
        assert shown == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("torch\x1b[2J", "torch?[2J"),
        ("a\nb", "a?b"),
        ("gpj.\u202eexe", "gpj.?exe"),
        ("Modell für GPU 日本", "Modell für GPU 日本"),
    ],
)
def test_the_replaced_can_be_seen(text: str, shown: str) -> None:
    assert TypeAdapter(Text).validate_python(text) == shown


def test_a_text_that_is_too_long_is_refused() -> None:
    assert len(TypeAdapter(Text).validate_python("\x1b" * LONGEST)) == LONGEST
    with pytest.raises(ValidationError):
        TypeAdapter(Text).validate_python("a" * (LONGEST + 1))


def test_a_condition_says_it_in_one_line() -> None:
    finding = Finding("Ready", "True", "Applied", f"pod {ESCAPES} runs")
    [condition] = renew_conditions([], [finding], generation=1, now="2026-11-30T00:00:00Z")
    assert condition["message"].isprintable()

"""Quantities of memory as whole bytes: exact, bounded, and never guessed."""

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpumem_operator.api.quantity import (
    GIB,
    LARGEST_BYTES,
    MIB,
    QuantityError,
    floor_to_mib,
    format_bytes,
    parse_bytes,
)

AMOUNTS = st.integers(min_value=0, max_value=LARGEST_BYTES)
SUFFIXES = {
    "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
}  # fmt: skip


@given(AMOUNTS)
def test_what_is_written_is_read_again(amount: int) -> None:
    assert parse_bytes(format_bytes(amount)) == amount


@given(AMOUNTS)
def test_plain_digits_and_integers_are_bytes(amount: int) -> None:
    assert parse_bytes(str(amount)) == parse_bytes(amount) == amount


@given(st.integers(0, 2**70), st.sampled_from(sorted(SUFFIXES)))
def test_a_suffix_multiplies_exactly_or_is_refused_as_too_much(number: int, suffix: str) -> None:
    expected = number * SUFFIXES[suffix]
    if expected <= LARGEST_BYTES:
        assert parse_bytes(f"{number}{suffix}") == expected
    else:
        with pytest.raises(QuantityError, match=f"more than the largest quantity, {LARGEST_BYTES}"):
            parse_bytes(f"{number}{suffix}")


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(["", "k", "Ki", "Gi", "e3"]))
def test_more_is_never_read_as_less(one: int, other: int, suffix: str) -> None:
    assert (one < other) == (parse_bytes(f"{one}{suffix}") < parse_bytes(f"{other}{suffix}"))


@given(st.integers(0, 2**20), st.integers(1, 30))
def test_a_binary_fraction_is_exact(numerator: int, places: int) -> None:
    amount = numerator * GIB / 2**places
    text = f"{numerator / 2**places:.30f}Gi"
    assert numerator / 2**places == float(text.removesuffix("Gi"))
    assert parse_bytes(text) == int(amount)


@given(st.text(max_size=40))
def test_any_text_is_read_as_an_amount_or_refused(text: str) -> None:
    with contextlib.suppress(QuantityError):
        assert 0 <= parse_bytes(text) <= LARGEST_BYTES


@given(st.text(alphabet="xyz '\"\n", max_size=80))
def test_a_refusal_shows_the_text_or_its_beginning(text: str) -> None:
    with pytest.raises(QuantityError, match=re.escape(repr(text[:64]))):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("8Gi", 8 * GIB),
        ("1.5Gi", 1536 * MIB),
        ("0.5Gi", 512 * MIB),
        (".5Gi", 512 * MIB),
        ("1.", 1),
        ("+1", 1),
        ("-0", 0),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e+3", 1000),
        ("1e0003", 1000),
        ("1E", 10**18),
        ("1k", 1000),
        ("1000m", 1),
        ("3e9n", None),
        ("007", 7),
        ("9223372036854775807", LARGEST_BYTES),
        ("9223372036854775808", None),
        ("8Ei", None),
        ("1e999", None),
        ("100m", None),
        ("1n", None),
        ("1.1Ki", None),
        (".", None),
        ("", None),
        ("1K", None),
        ("1ki", None),
        ("8GB", None),
        ("8 Gi", None),
        ("8Gi\n", None),
        ("0x10", None),
        ("1_000", None),
        ("٣Gi", None),
        ("-1", None),
    ],
)
def test_every_form_is_read_as_kubernetes_reads_it(text: str, amount: int | None) -> None:
    if amount is None:
        with pytest.raises(QuantityError):
            parse_bytes(text)
    else:
        assert parse_bytes(text) == amount


@pytest.mark.parametrize("value", [True, False, 1.5, None, [], b"8Gi"])
def test_what_is_neither_text_nor_an_integer_is_no_quantity(value: object) -> None:
    with pytest.raises(QuantityError, match="is not a quantity: write for example"):
        parse_bytes(value)


@given(AMOUNTS)
def test_the_step_of_drivers_is_at_most_one_mib_down(amount: int) -> None:
    floor = floor_to_mib(amount)
    assert floor % MIB == 0
    assert 0 <= amount - floor < MIB

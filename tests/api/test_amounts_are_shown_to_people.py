from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpumem_operator.api.quantity import GIB, LARGEST_BYTES, MIB, parse_bytes, show_bytes


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "0"),
        (204 * GIB, "204Gi"),
        (1536 * MIB, "1536Mi"),
        (238499220 * 1024, "227.5Gi"),
        (8 * 10**9, "7.5Gi"),
        (LARGEST_BYTES, "8.0Ei"),
    ],
)
def test_exact_where_that_is_short_and_rounded_where_not(amount: int, shown: str) -> None:
    assert show_bytes(amount) == shown


@given(st.integers(min_value=0, max_value=LARGEST_BYTES))
def test_what_is_shown_is_short_and_near(amount: int) -> None:
    text = show_bytes(amount)
    assert len(text) <= 8
    number = float(text.rstrip("KMGTPEi"))
    unit = parse_bytes(f"1{text.lstrip('0123456789.')}")
    assert abs(number * unit - amount) <= unit * 0.0501

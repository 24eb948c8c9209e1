"""One metric of a page in Prometheus' text format."""

from __future__ import annotations

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpumem_operator.scaling.exposition import UnreadableSignal, value_of

VLLM = """\
# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="a \\"{quoted}\\" model"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75 1700000000000
vllm:kv_cache_usage_perc_total{engine="1"} 9
vllm:num_requests_waiting{engine="0"} 3.0
plain 7
exact{} 1e3
"""


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("vllm:kv_cache_usage_perc", Fraction(5, 8)),
        ("vllm:num_requests_waiting", Fraction(3)),
        ("plain", Fraction(7)),
        ("exact", Fraction(1000)),
    ],
)
def test_the_mean_of_the_series_is_read(metric: str, value: Fraction) -> None:
    assert value_of(VLLM.encode(), metric) == value


@pytest.mark.parametrize(
    ("page", "word"),
    [
        (VLLM.replace("kv_cache", "gpu_cache"), "NoSuchMetric"),
        ("", "NoSuchMetric"),
        ("vllm:kv_cache_usage_perc NaN", "NotANumber"),
        ("vllm:kv_cache_usage_perc +Inf", "NotANumber"),
        ("vllm:kv_cache_usage_perc -1", "NotANumber"),
        ("vllm:kv_cache_usage_perc much", "NotANumber"),
        ("<html>vllm:kv_cache_usage_perc 1</html>", "NoSuchMetric"),
    ],
)
def test_what_is_no_number_is_unknown_and_never_zero(page: str, word: str) -> None:
    with pytest.raises(UnreadableSignal, match=word):
        value_of(page.encode(), "vllm:kv_cache_usage_perc")


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: raw.decode("latin-1")))
def test_any_page_is_answered(page: str) -> None:
    with contextlib.suppress(UnreadableSignal):
        value_of(f"m{page}".encode("latin-1", "replace"), "m")


MANY = 4 * 2**20 // 8


@pytest.mark.parametrize(
    ("page", "word"),
    [
        pytest.param(b"m 5e-324\nm 1e308\n" * (MANY // 2), "TooManySeries", id="far apart"),
        pytest.param(b"m 1e308\n" * 256, "NotANumber", id="a sum that is no number"),
        pytest.param(b"m{" + b"a" * MANY + b"} x", "LineTooLong", id="one long line"),
        pytest.param(b"m{" + b'"a"' * MANY, "LineTooLong", id="many quotes"),
        pytest.param(b"m" + b" " * MANY + b"x y", "LineTooLong", id="many spaces"),
        pytest.param(b"m " + b"1" * MANY, "LineTooLong", id="many digits"),
        pytest.param(b"\n" * MANY, "NoSuchMetric", id="empty lines"),
        pytest.param(b"mm 1\n" * MANY, "NoSuchMetric", id="longer names"),
        pytest.param(b"\xff" * MANY, "NoSuchMetric", id="no text at all"),
    ],
)
def test_a_page_that_would_be_costly_is_refused(page: bytes, word: str) -> None:
    with pytest.raises(UnreadableSignal, match=word):
        value_of(page, "m")


def test_a_page_in_the_manner_of_windows_is_read() -> None:
    assert value_of(b"# TYPE m gauge\r\nm 0.5\r\n", "m") == Fraction(1, 2)

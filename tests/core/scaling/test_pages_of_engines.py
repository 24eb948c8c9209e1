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
    assert value_of(VLLM, metric) == value


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
        value_of(page, "vllm:kv_cache_usage_perc")


@given(st.text(max_size=200))
def test_any_page_is_answered(page: str) -> None:
    with contextlib.suppress(UnreadableSignal):
        value_of(f"m{page}", "m")

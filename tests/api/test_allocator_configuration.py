"""PYTORCH_CUDA_ALLOC_CONF is read so that no string that aborts `import torch` comes out."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpumem_operator.api.pytorch_allocator import (
    EXPECTED,
    KEYS,
    OLDEST,
    AllocatorSyntaxError,
    format_config,
    format_version,
    parse_config,
    parse_version,
    problem_of_value,
)

GOOD_VALUES = {
    "bool": ["True", "False"],
    "backend": ["native", "cudaMallocAsync"],
    "mb": ["21", "128", "999999999"],
    "fraction": ["0.8", ".5", "0.01", "0.999999999999999"],
    "power": ["1", "64", "128"],
    "roundup": ["4", "[256:1,512:2,>:8]", "[>:4]", "[1:0,131072:4,>:8]"],
}
BAD_VALUES = {
    "bool": ["true", "1", ""],
    "backend": ["Native", "hipMallocAsync", ""],
    "mb": ["0", "1.5", "-1", "1e3", "9999999999", ""],
    "fraction": ["0", "0.0", "1", "1.0", "50%", "0.99999999999999999999", ""],
    "power": ["0", "3", "256", ""],
    "roundup": ["0", "3", "[300:2]", "[0:1]", "[256:3]", "[]", "[256:1", "128", ""],
}

VALID = st.one_of(
    *(
        st.tuples(st.just(key), st.sampled_from(GOOD_VALUES[spec.kind]))
        for key, spec in KEYS.items()
    )
)
CONFIGS = st.lists(VALID, max_size=6).map(dict)
PAIR = re.compile(r"[A-Za-z0-9_]+:(\[[^\[\]]*\]|[^,:\[\]\s;=]+)")


@given(CONFIGS)
def test_what_is_written_is_read_again(config: dict[str, str]) -> None:
    assert parse_config(format_config(config)) == config


@given(CONFIGS, st.sampled_from(["", " ", "  "]))
def test_blanks_and_a_last_comma_mean_nothing(config: dict[str, str], blank: str) -> None:
    text = format_config(config)
    spread = re.sub(r"([,:])", rf"{blank}\1{blank}", text)
    end = f",{blank}" if config else ""
    assert parse_config(f"{blank}{spread}{end}") == config


@given(st.text(alphabet="ab:,;=[]> 1._\n", max_size=24))
def test_any_text_is_an_error_or_becomes_pairs_that_pytorch_can_read(text: str) -> None:
    try:
        config = parse_config(text)
    except AllocatorSyntaxError:
        return
    written = format_config(config)
    assert parse_config(written) == config
    assert all(PAIR.fullmatch(f"{key}:{value}") for key, value in config.items())


@pytest.mark.parametrize(
    "text",
    [
        "max_split_size_mb",
        "max_split_size_mb=128",
        "max_split_size_mb:",
        ":128",
        "a:1;b:2",
        "a:1 b:2",
        "a:1,,b:2",
        ",a:1",
        "a:1:2",
        "roundup_power2_divisions:[256:1",
        "roundup_power2_divisions:256:1]",
        "a b:1",
        "a:[1]2",
    ],
)
def test_what_is_not_key_and_value_is_an_error_that_says_what_would_happen(text: str) -> None:
    with pytest.raises(AllocatorSyntaxError, match="aborts on it inside `import torch`"):
        parse_config(text)


def test_of_a_repeated_key_the_last_value_counts_at_the_last_place() -> None:
    assert list(parse_config("a:1,b:2,a:3").items()) == [("b", "2"), ("a", "3")]


def test_an_empty_string_sets_nothing() -> None:
    assert parse_config("") == parse_config("  ") == {}


@pytest.mark.parametrize("key", KEYS)
def test_good_values_have_no_problem(key: str) -> None:
    for value in GOOD_VALUES[KEYS[key].kind]:
        assert problem_of_value(key, value) is None


@pytest.mark.parametrize("key", KEYS)
def test_bad_values_are_refused_with_what_is_expected(key: str) -> None:
    for value in BAD_VALUES[KEYS[key].kind]:
        problem = problem_of_value(key, value)
        assert problem is not None, value
        assert problem.startswith(f"{key}: '{value}' is refused by PyTorch: it takes ")
        assert EXPECTED[KEYS[key].kind] in problem


@pytest.mark.parametrize("key", [key for key, spec in KEYS.items() if spec.kind == "mb"])
def test_the_least_number_of_mib_is_just_enough(key: str) -> None:
    least = KEYS[key].least
    assert problem_of_value(key, str(least)) is None
    assert f"of at least {least}" in str(problem_of_value(key, str(least - 1)))


def test_versions_are_compared_as_numbers() -> None:
    assert parse_version("2.9") < parse_version("2.10") < parse_version("3.0")
    assert format_version(parse_version("2.10")) == "2.10"


def test_no_key_is_older_than_the_oldest_release_that_was_looked_at() -> None:
    assert min(spec.since for spec in KEYS.values()) == OLDEST

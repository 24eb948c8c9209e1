"""The arithmetic of caps: pure, so every case is tried."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpumem_shim.limits import (
    MIB,
    SMALLEST_POOL_BYTES,
    STEP_BYTES,
    Limits,
    Share,
    excess,
    fraction_of,
    limits_from,
    split,
)

AMOUNTS = st.integers(0, 2**45)


@given(st.integers(1, 2**50), st.integers(1, 2**50))
def test_a_fraction_as_frameworks_compute_it_is_never_above_the_cap(cap: int, total: int) -> None:
    fraction = fraction_of(cap, total)
    assert 0.0 < fraction <= 1.0
    assert int(fraction * total) <= cap
    if cap < total:
        assert int(fraction * total) >= cap - max(2, cap >> 48), "and is not lower than needed"


@given(AMOUNTS, st.integers(0, 2**35), st.integers(1, 64))
def test_caps_and_reserves_of_all_processes_are_within_the_limit(
    limit: int, reserve: int, processes: int
) -> None:
    limits = Limits(limit, reserve, processes)
    if limits.pool_bytes is None:
        assert limits.obstacle == "TooNear"
        return
    assert limits.pool_bytes >= SMALLEST_POOL_BYTES
    assert processes * (limits.pool_bytes + reserve) <= limit
    assert limits.obstacle is None


@given(AMOUNTS, st.lists(AMOUNTS, min_size=1, max_size=4), st.none() | AMOUNTS)
def test_caps_of_one_process_are_within_its_pool_whatever_is_held_already(
    pool: int, held: list[int], fixed: int | None
) -> None:
    shares = [Share(str(n), amount) for n, amount in enumerate(held)]
    if fixed is not None:
        shares.append(Share("fixed", 0, fixed))
    caps = split(pool, shares)
    assert "fixed" not in caps
    assert all(cap > 0 for cap in caps.values())
    if pool - (fixed or 0) >= MIB:
        assert sum(caps.values()) <= pool - (fixed or 0)


@given(AMOUNTS, st.lists(AMOUNTS, min_size=1, max_size=4))
def test_who_holds_less_than_the_pool_may_keep_it_all(pool: int, held: list[int]) -> None:
    caps = split(sum(held) + pool, [Share(str(n), amount) for n, amount in enumerate(held)])
    if pool >= (len(held) + 1) * MIB:
        assert all(caps[str(n)] >= amount - MIB for n, amount in enumerate(held))


def test_one_framework_alone_has_the_whole_pool() -> None:
    assert split(7 * 2**30, [Share("torch", 123456789)]) == {"torch": 7 * 2**30}


@given(AMOUNTS, AMOUNTS)
def test_excess_is_never_less_than_what_is_over_the_reserve(outside: int, reserve: int) -> None:
    over = max(0, outside - reserve)
    assert over <= excess(outside, reserve) < over + STEP_BYTES


def test_an_unknown_amount_lowers_no_cap() -> None:
    assert excess(None, 0) == 0


TEXTS = st.none() | st.text() | st.sampled_from(["", "0", "-1", "1e9", "٣", "8Gi", str(8 * 2**30)])


@given(TEXTS, TEXTS, TEXTS)
def test_whatever_the_environment_holds_is_read(
    limit: str | None, reserve: str | None, processes: str | None
) -> None:
    names = ("GPUMEM_LIMIT_BYTES", "GPUMEM_CONTEXT_RESERVE_BYTES", "GPUMEM_PROCESSES_PER_GPU")
    given = dict(zip(names, (limit, reserve, processes), strict=True))
    limits = limits_from({name: text for name, text in given.items() if text is not None})
    assert limits.processes >= 1
    assert (limits.pool_bytes is None) == (limits.obstacle is not None)
    assert limits_from({}).reserve_bytes == 1024 * MIB

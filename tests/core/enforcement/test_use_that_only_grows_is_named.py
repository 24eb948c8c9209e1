"""A leak shows in the least that a program holds, and not in its ups and downs."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpumem_operator.enforcement.growth import SLOT_SECONDS, Growth, Growths, Place
from overuse import hold

HOUR = 3600
STEP = 30


def watched(
    use: Callable[[float], float | None],
    *,
    hours: float = 1,
    limit: float = 8,
    absent: Collection[int] = (),
) -> Growth | None:
    """What is found at the end of so many hours with this use in GiB; in the seconds `absent` the
    pod is not among those that hold something."""
    growths = Growths()
    found: dict[Place, Growth] = {}
    for step in range(int(hours * HOUR / STEP)):
        now = step * STEP
        seen = [("pod-1", hold(use(now), limit=limit))] if now not in absent else []
        found = growths.look(seen, now)
    return found.get(Place("pod-1", "main", "g0"))


def test_a_leak_is_named_with_its_rate_and_the_time_until_the_limit() -> None:
    growth = watched(lambda now: 2 + now / HOUR)
    assert growth is not None
    assert growth.bytes_per_second * HOUR == pytest.approx(2**30, rel=0.01)
    assert growth.seconds_to_limit == pytest.approx(5 * HOUR, rel=0.02)
    assert "by 1023.9Mi an hour" in growth.sentence or "1Gi an hour" in growth.sentence
    assert "in 5 h" in growth.sentence


def test_a_leak_under_a_load_that_swings_is_named_too() -> None:
    growth = watched(lambda now: 2 + now / HOUR + (1.5 if now % 120 < 60 else 0))
    assert growth is not None
    assert growth.bytes_per_second * HOUR == pytest.approx(2**30, rel=0.05)


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda _: 6.0, id="steady"),
        pytest.param(lambda now: min(6.0, now / 60), id="a model is loaded, then steady"),
        pytest.param(lambda now: 3 + 2 * (now % 1200 < 600), id="up and down"),
        pytest.param(lambda now: 6 - now / HOUR, id="falls"),
        pytest.param(lambda now: 6 + now * 1e-7, id="less than anybody could measure"),
        pytest.param(lambda _: None, id="unknown"),
    ],
)
def test_other_use_is_no_leak(use: Callable[[float], float | None]) -> None:
    assert watched(use) is None


def test_nothing_is_said_before_half_an_hour_has_passed() -> None:
    assert watched(lambda now: 2 + now / HOUR, hours=0.5) is None


def test_use_that_was_given_back_is_no_leak_any_more() -> None:
    assert watched(lambda now: 2 + now / HOUR if now < HOUR - 60 else 1.0) is None


def test_a_gap_in_measurement_begins_anew() -> None:
    assert watched(lambda now: None if 1800 <= now < 2700 else 2 + now / HOUR) is None


def test_a_pod_of_which_nothing_is_known_for_a_moment_goes_on_growing() -> None:
    assert watched(lambda now: 2 + now / HOUR, absent=range(1830, 1890)) is not None
    assert watched(lambda now: 2 + now / HOUR, absent=range(1800, 2700)) is None


def test_pods_that_are_gone_are_forgotten() -> None:
    growths = Growths()
    for number in range(1000):
        growths.look([(f"pod-{number}", hold(2))], number * SLOT_SECONDS / 10)
    assert len(growths) <= 20


@given(st.lists(st.sampled_from([None, 1.0, 2.0, 3.0, 9.0]), max_size=200))
def test_whatever_is_measured_the_numbers_make_sense(trace: list[float | None]) -> None:
    growths = Growths()
    for index, used in enumerate(trace):
        for growth in growths.look([("pod-1", hold(used))], index * 100).values():
            assert growth.bytes_per_second > 0
            assert growth.seconds_to_limit >= 0

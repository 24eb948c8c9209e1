"""Whatever a pod does, and whoever leads, these hold."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import settings as rules
from hypothesis import strategies as st

from overuse import LISTED, World, facts, settings

unhurried = rules(deadline=None)

AMOUNTS = st.sampled_from([None, 1.0, 7.5, 8.0, 8.5, 20.0])
TRACES = st.lists(AMOUNTS, min_size=1, max_size=80)
LONG_OVERUSE = st.lists(st.sampled_from([9.0, 12.0]), min_size=120, max_size=130)
"""Ten minutes: whatever can be done is done by then, also where a leader tries it 10 s later."""
ACTIONS = st.lists(
    st.sampled_from(["Reclaim", "Evict", "Delete", "Kill"]), min_size=1, max_size=4, unique=True
)
ANSWERS = st.sampled_from(["Done", "Busy", "Unsupported", "Failed", None])


@st.composite
def worlds(draw: st.DrawFn) -> World:
    given = settings(
        *draw(ACTIONS), evictionTimeoutSeconds=60, gracePeriodSeconds=draw(st.sampled_from([0, 60]))
    )
    pod = facts(settings=given, killable=draw(st.sampled_from([(), (LISTED,)])))
    return World(pod, draw(ANSWERS), draw(st.sampled_from([0.0, 150.0, 1e9])))


@unhurried
@given(worlds(), st.lists(st.sampled_from([None, 1.0, 8.0]), max_size=80))
def test_nobody_is_touched_who_was_never_over_its_limit(
    world: World, trace: list[float | None]
) -> None:
    assert world.run(trace).done == []


@unhurried
@given(worlds(), TRACES)
def test_nothing_is_done_at_a_moment_that_is_unknown(
    world: World, trace: list[float | None]
) -> None:
    for index, used in enumerate(trace):
        before = len(world.done)
        world.look(used, index * 5)
        assert used is not None or len(world.done) == before


@unhurried
@given(worlds(), st.lists(st.sampled_from([9.0, 20.0, None]), max_size=11), st.integers(0, 6))
def test_noise_that_comes_down_within_the_grace_period_touches_nobody(
    world: World, burst: list[float | None], times: int
) -> None:
    world.facts = replace(world.facts, settings=settings("Evict", gracePeriodSeconds=60))
    assert world.run([*burst, 7.9] * times).done == []


@unhurried
@given(worlds(), TRACES)
def test_actions_come_in_the_order_of_the_policy(world: World, trace: list[float | None]) -> None:
    for index, used in enumerate(trace):
        before = len(world.done)
        decision = world.look(used, index * 5)
        happened = world.done[before:]
        assert len(happened) <= 1
        if happened and decision.condition is not None:
            assert decision.condition.status == "True"


@unhurried
@given(worlds(), LONG_OVERUSE, st.lists(st.integers(0, 79), max_size=5))
def test_the_same_trace_gives_the_same_actions_whenever_the_leader_changes(
    world: World, trace: list[float], restarts: list[int]
) -> None:
    alone = replace(world, done=[], records=[], carried_out={}, answers={}).run(trace)
    changed = replace(world, done=[], records=[], carried_out={}, answers={}).run(
        trace, restarts=restarts
    )
    assert changed.done == alone.done


@unhurried
@given(worlds(), TRACES)
def test_use_that_swings_around_the_limit_writes_no_more_than_it_swings(
    world: World, trace: list[float | None]
) -> None:
    writes = 0
    for index, used in enumerate(trace):
        writes += world.look(used, index * 0.5).condition is not None
    known = [used for used in trace if used is not None]
    swings = sum(a != b for a, b in pairwise(known))
    stages = 5
    assert writes <= (swings + 1) * stages

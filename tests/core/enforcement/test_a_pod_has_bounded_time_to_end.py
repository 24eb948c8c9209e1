"""A pod that was told to end and goes on over its limit: for how long, and what follows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as rules
from hypothesis import strategies as st

from gpumem_operator.enforcement.decision import Decision, decide
from gpumem_operator.enforcement.ending import OVERDUE_TIME, Ending
from gpumem_operator.enforcement.facts import Facts, Tried
from gpumem_operator.enforcement.steps import Orders, Removal
from overuse import LISTED, at, condition, facts, settings

unhurried = rules(deadline=None)

YEAR = 31_536_000
NOW = 1000.0


def ending(*, by: float, grace: int = YEAR) -> Ending:
    return Ending(at(by), grace)


def over(*actions: str, timeout: int = 600, **fields: Any) -> Facts:
    given = settings(*actions, evictionTimeoutSeconds=timeout)
    return facts(settings=given, stored=condition(), **fields)


@pytest.mark.parametrize("action", ["Evict", "Delete"])
@pytest.mark.parametrize(
    ("asks", "timeout", "granted"),
    [
        pytest.param(30, 600, None, id="the usual time is its own"),
        pytest.param(600, 600, None, id="as long as it may"),
        pytest.param(YEAR, 600, 600, id="a year is cut"),
        pytest.param(YEAR, 7200, 7200, id="by what the policy says"),
        pytest.param(30, 1, None, id="nobody gets less than the usual time"),
        pytest.param(YEAR, 1, 30, id="not even who asks for a year"),
    ],
)
def test_how_long_a_pod_gets_to_end(
    action: str, asks: int, timeout: int, granted: int | None
) -> None:
    pod = over(action, timeout=timeout, asks_seconds=asks)
    begun = decide(replace(pod, stored=condition()), at(NOW))
    assert isinstance(begun.deed, Removal)
    assert begun.deed.grace_seconds == granted
    assert begun.condition is not None
    told = f"It gets {granted} s to end, of {asks} s that it asks for"
    assert (told in begun.condition.message) == (granted is not None)


@pytest.mark.parametrize("action", ["Reclaim", "Evict", "Delete", "Kill"])
@pytest.mark.parametrize("by", [NOW - 29, NOW, NOW + 30, NOW + 600])
def test_a_pod_that_ends_soon_is_left_alone(action: str, by: float) -> None:
    assert decide(over(action, ending=ending(by=by)), at(NOW)) == Decision()


def test_a_pod_that_others_gave_a_year_is_told_to_end_sooner() -> None:
    pod = over("Evict", ending=ending(by=NOW - 100 + YEAR))
    decision = decide(pod, at(NOW))
    assert isinstance(decision.deed, Removal)
    assert decision.deed.grace_seconds == 100 + 600
    assert decision.condition is not None
    assert decision.condition.reason == "Evicting"
    assert "and gets 600 s now" in decision.condition.message
    ends = replace(pod, ending=ending(by=NOW + 600, grace=700), stored=decision.condition)
    assert decide(ends, at(NOW + 1)) == Decision()


def test_it_is_told_once_in_a_while_until_the_api_server_shows_it() -> None:
    pod = over("Evict", ending=ending(by=NOW + YEAR), tried=Tried("Done", at(NOW)))
    assert decide(pod, at(NOW + 9)).deed is None
    assert isinstance(decide(pod, at(NOW + 10)).deed, Removal)


def test_a_grace_period_runs_for_a_pod_with_a_year_to_end_as_for_any_other() -> None:
    pod = over("Evict", ending=ending(by=YEAR))
    assert decide(pod, at(59)).deed is None
    begun = decide(replace(pod, stored=None), at(0))
    assert begun.event == "OverLimit"


@pytest.mark.parametrize("mode", ["Audit", "Warn"])
def test_without_enforcement_nobody_is_told_to_end_sooner(mode: str) -> None:
    pod = replace(over("Evict", ending=ending(by=NOW + YEAR)), mode=mode)  # type: ignore[arg-type]
    assert decide(pod, at(NOW)).deed is None


def test_a_loop_of_evictions_keeps_no_pod_that_is_ending_for_a_year() -> None:
    pod = over("Evict", ending=ending(by=NOW + YEAR), evictions_of_owner=3)
    assert isinstance(decide(pod, at(NOW)).deed, Removal)


@pytest.mark.parametrize("taken_away", ["Evict", "Delete"])
def test_a_pod_that_should_have_ended_gets_the_next_action(taken_away: str) -> None:
    pod = replace(
        over(taken_away, "Kill", ending=ending(by=NOW, grace=30), killable=(LISTED,)),
        stored=condition("Evicting" if taken_away == "Evict" else "Deleting"),
    )
    overdue = NOW + OVERDUE_TIME.total_seconds()
    assert decide(pod, at(overdue - 1)) == Decision()
    decision = decide(pod, at(overdue))
    assert isinstance(decision.deed, Orders)
    assert decision.deed.action == "Kill"
    [record] = decision.records
    assert (record.action, record.result) == (taken_away, "StillRunning")


def test_where_no_action_is_left_its_node_is_to_be_looked_at() -> None:
    pod = replace(over("Evict", ending=ending(by=NOW, grace=30)), stored=condition("Evicting"))
    decision = decide(pod, at(NOW + 100))
    assert decision.deed is None
    assert decision.condition is not None
    assert decision.condition.reason == "ActionsExhausted"
    assert "look at the kubelet of its node" in decision.condition.message
    assert decide(replace(pod, stored=decision.condition), at(NOW + 200)) == Decision()


def test_an_unknown_or_small_use_of_an_overdue_pod_brings_nothing() -> None:
    for used in (None, 4):
        pod = facts(used=used, ending=ending(by=0, grace=30), stored=condition("Evicting"))
        assert decide(pod, at(NOW)).deed is None


@unhurried
@given(
    timeout=st.integers(1, 86_400),
    grace=st.integers(1, 10**9),
    told=st.integers(0, 10**6),
    action=st.sampled_from(["Evict", "Delete"]),
)
def test_whoever_told_it_what_it_is_at_most_one_bound_from_its_end(
    timeout: int, grace: int, told: int, action: str
) -> None:
    """A grace period only gets shorter, never 0 (the object would go, and the program not), and
    nobody is told twice."""
    now = told + 500_000
    pod = over(action, timeout=timeout, ending=ending(by=told + grace, grace=grace))
    pod = replace(pod, stored=condition("Deleting" if action == "Delete" else "Evicting"))
    deed = decide(pod, at(now)).deed
    if not isinstance(deed, Removal):
        return
    assert deed.grace_seconds is not None
    assert 1 <= deed.grace_seconds < grace
    by = told + deed.grace_seconds
    assert now < by <= now + max(30, timeout) + 1
    shown = replace(pod, ending=ending(by=by, grace=deed.grace_seconds))
    assert decide(shown, at(now)).deed is None

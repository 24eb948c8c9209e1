"""What keeps a recommendation from being followed at once, or at all."""

from __future__ import annotations

from typing import Any

import pytest

from gpumem_operator.scaling import reasons
from gpumem_operator.scaling.memory import (
    MOST_CHANGES,
    MOST_PASTS,
    Change,
    Memory,
    Past,
)
from gpumem_operator.scaling.stabilization import remember, stabilized
from scaling_builders import AT_ONCE, NOW, decision, pods, room


def test_the_highest_recommendation_of_the_window_keeps_replicas_from_shrinking() -> None:
    memory = decision(pods(80, 80, 80)).memory
    for passed in (15, 150, 299):
        found = decision(pods(20, 20, 20), memory=memory, now=NOW + passed)
        assert (found.desired, found.reason) == (3, reasons.STABILIZING)
        memory = found.memory
    found = decision(pods(20, 20, 20), memory=memory, now=NOW + 15 + 300)
    assert (found.desired, found.reason) == (1, reasons.SCALED_DOWN)


def test_one_high_recommendation_begins_the_window_anew() -> None:
    memory = decision(pods(20, 20, 20)).memory
    memory = decision(pods(80, 80, 80), memory=memory, now=NOW + 290).memory
    memory = decision(pods(20, 20, 20), memory=memory, now=NOW + 305).memory
    assert decision(pods(20, 20, 20), memory=memory, now=NOW + 600).desired == 3
    assert decision(pods(20, 20, 20), memory=memory, now=NOW + 605).desired == 1


def test_time_in_which_nothing_is_known_is_no_time_below() -> None:
    memory = decision(pods(20, 20, 20)).memory
    silent = pods("Silent", "Silent", "Silent")
    memory = decision(silent, memory=memory, now=NOW + 10).memory
    found = decision(pods(20, 20, 20), memory=memory, now=NOW + 3000)
    assert (found.desired, found.reason) == (3, reasons.STABILIZING)


def test_a_new_target_waits_a_window_before_it_shrinks_and_grows_at_once() -> None:
    assert decision(pods(10, 10)).reason == reasons.STABILIZING
    assert decision(pods(100, 100)).reason == reasons.SCALED_UP


def test_the_lowest_recommendation_of_the_window_keeps_replicas_from_growing() -> None:
    rules: Any = {"scaleUp": {"stabilizationSeconds": 60}}
    memory = decision(pods(80, 80), **rules).memory
    found = decision(pods(100, 100), memory=memory, now=NOW + 15, **rules)
    assert (found.desired, found.reason) == (2, reasons.STABILIZING)
    assert decision(pods(100, 100), memory=found.memory, now=NOW + 75, **rules).desired == 3


def test_between_two_windows_the_nearest_number_is_taken() -> None:
    memory = Memory(latest=4, highest=(Past(NOW, 8),))
    assert stabilized(memory, 10) == 8
    assert stabilized(memory, 6) == 6
    assert stabilized(memory, 2) == 4


def test_a_window_holds_few_numbers_and_forgets_none_that_counts() -> None:
    memory = Memory()
    for step in range(200):
        memory = remember(
            memory, 1000 - step, replicas=1000, now=NOW + step, up_seconds=0, down_seconds=3600
        )
    assert len(memory.highest) <= MOST_PASTS
    assert stabilized(memory, 900) == 900, "801 to 1000 were all recommended within the hour"
    assert memory.highest[0].replicas == 1000
    assert memory.lowest == ()


POD: Any = {"type": "Pods", "value": 2, "periodSeconds": 60}
PERCENT: Any = {"type": "Percent", "value": 50, "periodSeconds": 60}


@pytest.mark.parametrize(
    ("policies", "up", "down"),
    [([POD], 6, 2), ([PERCENT], 6, 2), ([POD, PERCENT | {"value": 100}], 8, 1), ([], 8, 1)],
    ids=["pods", "percent", "the larger change counts", "without a bound"],
)
def test_replicas_change_no_faster_than_the_rules_say(policies: Any, up: int, down: int) -> None:
    rules: Any = {"scaleUp": {"policies": policies}, "scaleDown": {"policies": policies}}
    rules["scaleDown"]["stabilizationSeconds"] = 0
    assert decision(pods(160, 160, 160, 160), **rules).desired == up
    assert decision(pods(0, 0, 0, 0), **rules).desired == down


def test_what_was_done_within_the_period_counts() -> None:
    rules: Any = {"scaleUp": {"policies": [POD]}}
    full = pods(*[160] * 4)
    for past, desired in ((59, 4), (60, 6)):
        memory = Memory(latest=4, changes=(Change(NOW - past, 2, 4),))
        found = decision(full, memory=memory, **rules)
        assert found.desired == desired
    memory = Memory(latest=4, changes=(Change(NOW - 10, 2, 4),))
    found = decision(full, memory=memory, **rules)
    assert found.reason == reasons.PACE_LIMITED
    assert "scaleUp.policies allow 4 now" in found.message


def test_many_changes_become_fewer_and_bound_the_pace_all_the_same() -> None:
    memory = Memory()
    for step in range(MOST_CHANGES + 15):
        memory = memory.with_change(Change(NOW + step, step, step + 1), kept_seconds=1800)
    assert len(memory.changes) == MOST_CHANGES
    assert sum(one.after - one.before for one in memory.changes) == MOST_CHANGES + 15


@pytest.mark.parametrize(
    ("rooms", "desired", "reason"),
    [
        ((), 8, reasons.SCALED_UP),
        ((room(100),), 8, reasons.SCALED_UP),
        ((room(20),), 6, reasons.SCALED_UP),
        ((room(9),), 4, reasons.QUOTA_REACHED),
        ((room(-50),), 4, reasons.QUOTA_REACHED),
        ((room(100), room(10, tenant="all")), 5, reasons.SCALED_UP),
        ((room(100, pod=None),), 4, reasons.CHARGE_UNKNOWN),
        ((room(0, pod=0),), 8, reasons.SCALED_UP),
    ],
    ids=[
        "no tenant",
        "room enough",
        "room for two",
        "room for none",
        "quota was lowered",
        "two tenants: the one with less room",
        "a charge that is not known",
        "pods that cost nothing",
    ],
)
def test_never_more_than_tenants_can_pay_for(rooms: Any, desired: int, reason: str) -> None:
    found = decision(pods(160, 160, 160, 160), rooms=rooms)
    assert (found.desired, found.reason) == (desired, reason)


def test_a_lack_of_room_takes_nothing_away_and_says_what_to_do() -> None:
    found = decision(pods(100, 100, 100, 100), rooms=(room(3),), minReplicas=6)
    assert found.desired == 4
    assert "tenant research has 3Gi left, and a pod is charged 10Gi: raise its quota" in (
        found.message
    )


def test_replicas_without_a_pod_have_no_room_kept_by_themselves() -> None:
    # Two of five were refused for want of room: asking for more would only be refused again.
    found = decision(pods(160, 160, 160), replicas=5, rooms=(room(5),))
    assert (found.desired, found.reason) == (5, reasons.QUOTA_REACHED)


def test_shrinking_needs_no_room() -> None:
    assert decision(pods(10, 10, 10), rooms=(room(-5),), **AT_ONCE).desired == 1

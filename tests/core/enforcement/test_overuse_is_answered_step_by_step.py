"""What follows from one moment: a table of decisions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpumem_operator.enforcement.decision import CLOCKS_DIFFER, Decision, decide
from gpumem_operator.enforcement.facts import Answered, Tried
from gpumem_operator.enforcement.steps import Orders, Removal, order_id
from overuse import GIB, LISTED, SHIMMED, at, condition, facts, hold, settings

AFTER_GRACE = at(60)


def test_a_pod_within_its_limit_is_left_alone() -> None:
    assert decide(facts(used=5), at(0)) == Decision()


def test_use_above_the_threshold_is_told_with_numbers() -> None:
    decision = decide(facts(used=7.5), at(0))
    assert decision.condition is not None
    assert (decision.condition.status, decision.condition.reason) == ("False", "NearLimit")
    assert decision.event == "NearLimit"
    assert "Container main holds 7680Mi of its limit of 8Gi on g0 (93 %)" in (
        decision.condition.message
    )


def test_use_that_stays_near_the_threshold_is_not_told_again_and_again() -> None:
    begun = decide(facts(used=7.5), at(0))
    warned = facts(stored=begun.condition)
    for used in (7.3, 7.1, 7.0, 7.19, 6.9):
        assert decide(replace(warned, holds=(hold(used),)), at(10)) == Decision()
    relieved = decide(replace(warned, holds=(hold(6.7),)), at(10)).condition
    assert relieved is not None
    assert relieved.reason == "WithinLimit"


def test_use_above_the_limit_begins_the_grace_period() -> None:
    decision = decide(facts(), at(7))
    assert decision.condition is not None
    assert decision.condition.since == at(7)
    assert decision.condition.reason == "OverLimit"
    assert decision.deed is None
    assert "above for 60 s, this follows: Reclaim, then Evict" in decision.condition.message


def test_a_little_above_the_limit_does_not_read_like_the_limit() -> None:
    decision = decide(facts(used=8.01), at(0))
    assert decision.condition is not None
    told = "holds 8.0Gi of its limit of 8Gi on g0 (100 %, 10.2Mi too much)"
    assert told in decision.condition.message


def test_no_grace_period_is_shortened_by_how_times_are_stored() -> None:
    decision = decide(facts(), at(7.25))
    assert decision.condition is not None
    assert (decision.condition.since, decision.condition.step_began) == (at(8), at(8))


def test_nothing_is_done_within_the_grace_period() -> None:
    begun = decide(facts(), at(0))
    assert decide(facts(stored=begun.condition), at(59.9)) == Decision()


def test_at_its_end_the_first_action_begins() -> None:
    decision = decide(facts(stored=condition()), AFTER_GRACE)
    assert decision.condition is not None
    assert decision.condition.reason == "Reclaiming"
    assert decision.condition.since == at(0)
    assert isinstance(decision.deed, Orders)
    [(_, target)] = decision.deed.targets
    assert target == SHIMMED


def test_use_that_falls_below_ends_the_grace_period() -> None:
    decision = decide(facts(used=8, stored=condition()), at(59))
    assert decision.condition is not None
    assert decision.condition.status == "False"
    assert decision.condition.since == at(59)


@pytest.mark.parametrize("used", [None, pytest.param(8, id="at its limit")])
@pytest.mark.parametrize("reason", ["OverLimit", "Reclaiming", "Evicting", "Deleting", "Killing"])
def test_nothing_is_done_to_a_pod_that_is_not_known_to_be_over(
    reason: str, used: float | None
) -> None:
    decision = decide(facts(used=used, stored=condition(reason)), at(10_000))
    assert decision.deed is None


def test_what_is_unknown_of_one_gpu_hides_no_excess_on_another() -> None:
    both = facts(hold(None), hold(9, gpu="g1"), stored=condition())
    assert decide(both, AFTER_GRACE).deed is not None


def test_what_is_unknown_ends_no_grace_period() -> None:
    assert decide(facts(used=None, stored=condition()), AFTER_GRACE) == Decision()


def test_a_framework_that_has_reserved_its_limit_is_never_touched() -> None:
    full = facts(used=8, settings=settings("Evict", gracePeriodSeconds=0), stored=None)
    decision = decide(full, at(10_000))
    assert decision.deed is None
    assert decision.condition is not None
    assert decision.condition.status == "False"


@pytest.mark.parametrize(
    ("result", "action"), [("Busy", "Evict"), ("Unsupported", "Evict"), ("Failed", "Evict")]
)
def test_a_process_that_can_not_give_back_is_not_waited_for(result: str, action: str) -> None:
    reclaiming = facts(stored=condition("Reclaiming", began=60))
    key = order_id(reclaiming, "Reclaim", SHIMMED)
    answered = replace(reclaiming, answers={key: Answered(result, None, at(60.5))})
    decision = decide(answered, at(60.5))
    assert decision.deed == Removal("Evict")
    [record] = decision.records
    assert (record.action, record.result) == ("Reclaim", result)
    assert (record.limit_bytes, record.used_bytes) == (8 * GIB, 9 * GIB)
    assert decision.condition is not None
    assert decision.condition.reason == "Evicting"
    assert action == "Evict"


def test_a_pod_without_a_shim_is_evicted_at_once_after_the_grace_period() -> None:
    decision = decide(facts(stored=condition(), reclaimable=()), AFTER_GRACE)
    assert decision.deed == Removal("Evict")
    assert [record.result for record in decision.records] == ["Unsupported"]


def test_memory_that_was_given_back_is_measured_before_anything_else_is_done() -> None:
    reclaiming = facts(stored=condition("Reclaiming", began=60))
    key = order_id(reclaiming, "Reclaim", SHIMMED)
    answered = replace(reclaiming, answers={key: Answered("Done", GIB, at(61))})
    assert decide(answered, at(62)).deed is None
    assert decide(answered, at(64)).deed == Removal("Evict")
    ended = decide(replace(answered, holds=(hold(4),)), at(62))
    assert ended.condition is not None
    assert ended.condition.status == "False"
    assert [(record.action, record.result) for record in ended.records] == [("Reclaim", "Done")]


def test_a_sender_that_never_answers_is_waited_for_half_a_minute() -> None:
    reclaiming = facts(stored=condition("Reclaiming", began=60))
    assert isinstance(decide(reclaiming, at(89)).deed, Orders)
    decision = decide(reclaiming, at(90))
    assert decision.deed == Removal("Evict")
    assert [record.result for record in decision.records] == ["NoAnswer"]


def test_a_disruption_budget_is_asked_again_and_never_overridden_by_evict() -> None:
    evicting = facts(stored=condition("Evicting", began=60, tried=["Reclaim"]))
    blocked = replace(evicting, tried=Tried("BlockedByPDB", at(60)))
    assert decide(blocked, at(69)) == Decision()
    for later in (70, 700, 100_000):
        assert decide(blocked, at(later)).deed == Removal("Evict")


def test_delete_waits_for_a_budget_for_so_long() -> None:
    given = settings("Delete", evictionTimeoutSeconds=600)
    deleting = facts(settings=given, stored=condition("Deleting", began=60))
    assert decide(deleting, at(659)).deed == Removal("Evict")
    assert decide(deleting, at(660)).deed == Removal("Delete")


def test_an_action_behind_a_blocked_eviction_has_its_turn_after_the_same_time() -> None:
    given = settings("Evict", "Kill", evictionTimeoutSeconds=600)
    blocked = facts(
        settings=given,
        stored=condition("Evicting", began=60),
        tried=Tried("BlockedByPDB", at(655)),
        killable=(LISTED,),
    )
    assert decide(blocked, at(659)).deed is None
    decision = decide(blocked, at(660))
    assert isinstance(decision.deed, Orders)
    assert decision.deed.action == "Kill"
    assert [record.result for record in decision.records] == ["BlockedByPDB"]


@pytest.mark.parametrize("action", ["Evict", "Delete"])
def test_after_three_evictions_of_one_owner_within_an_hour_it_stops(action: str) -> None:
    given = settings(action)
    loop = facts(settings=given, stored=condition(), evictions_of_owner=3)
    decision = decide(loop, AFTER_GRACE)
    assert decision.deed is None
    assert decision.event == "EvictionLoop"
    assert [record.result for record in decision.records] == ["EvictionLoop"]
    assert decision.condition is not None
    assert decide(replace(loop, stored=decision.condition), at(70)) == Decision()
    an_hour_later = replace(loop, stored=decision.condition, evictions_of_owner=2)
    assert decide(an_hour_later, at(3700)).deed == Removal("Evict")


def test_kill_ends_the_largest_process_and_looks_again() -> None:
    second = replace(LISTED, pid=4008)
    killing = facts(
        settings=settings("Kill"),
        stored=condition("Killing", began=60),
        killable=(LISTED, second),
    )
    first = decide(killing, at(60)).deed
    assert isinstance(first, Orders)
    assert [target for _, target in first.targets] == [LISTED]
    key = order_id(killing, "Kill", LISTED)
    answered = replace(killing, answers={key: Answered("Done", None, at(61))})
    assert decide(answered, at(62)).deed is None
    later = decide(answered, at(64)).deed
    assert isinstance(later, Orders)
    assert [target for _, target in later.targets] == [second]


def test_kill_without_an_agent_is_told_as_not_possible() -> None:
    decision = decide(facts(settings=settings("Kill"), stored=condition()), AFTER_GRACE)
    assert decision.deed is None
    assert decision.event == "ActionsExhausted"
    assert [record.result for record in decision.records] == ["Unsupported"]


def test_audit_records_what_it_would_have_done_and_tells_nobody() -> None:
    audited = facts(mode="Audit")
    begun = decide(audited, at(0))
    assert begun.event == ""
    decision = decide(replace(audited, stored=begun.condition), AFTER_GRACE)
    assert decision.deed is None
    assert decision.event == ""
    [record] = decision.records
    assert (record.action, record.result) == ("Reclaim", "WouldHave")
    assert "Reclaim, then Evict" in record.message
    assert decide(replace(audited, stored=decision.condition), at(300)) == Decision()


def test_warn_tells_and_does_nothing() -> None:
    warned = facts(mode="Warn")
    begun = decide(warned, at(0))
    assert begun.event == "OverLimit"
    for later in (1, 10_000):
        assert decide(replace(warned, stored=begun.condition), at(later)) == Decision()


def test_a_policy_that_is_relaxed_meanwhile_stops_what_it_had_begun() -> None:
    evicting = facts(mode="Warn", stored=condition("Evicting", began=60))
    decision = decide(evicting, at(70))
    assert decision.deed is None
    assert decision.condition is not None
    assert decision.condition.reason == "OverLimit"
    assert decision.condition.since == at(0)


def test_without_a_limit_there_is_nothing_to_judge() -> None:
    assert decide(replace(facts(), holds=()), at(0)) == Decision()


def test_memory_on_a_gpu_of_others_is_told_with_how_that_is_known() -> None:
    stray = replace(hold(1, gpu="g1"), astray="on 2 GPUs, asked for 1")
    decision = decide(facts(hold(7.9), stray), at(0))
    assert decision.condition is not None
    assert decision.condition.reason == "OverLimit"
    assert "Container main holds 1Gi on g1: on 2 GPUs, asked for 1" in decision.condition.message


def test_nothing_held_on_a_gpu_of_others_is_nothing_over() -> None:
    stray = replace(hold(0, gpu="g1"), astray="on 2 GPUs, asked for 1")
    assert decide(facts(hold(1), stray), at(0)).condition is None


def test_a_grace_period_that_would_begin_in_the_future_begins_now() -> None:
    stored = condition("Evicting", since=86_400, began=86_400)
    decision = decide(facts(stored=stored), at(0))
    assert decision.condition is not None
    assert (decision.condition.reason, decision.condition.since) == ("OverLimit", at(0))
    assert decision.deed is None


def test_a_grace_period_that_began_by_a_clock_that_is_a_little_ahead_goes_on() -> None:
    begun = decide(facts(), at(CLOCKS_DIFFER.total_seconds())).condition
    assert decide(facts(stored=begun), at(0)) == Decision()


def test_an_action_that_would_have_begun_in_the_future_begins_anew() -> None:
    """The leader that began it had a clock that was ahead, and is set right by now."""
    decision = decide(facts(stored=condition("Evicting", since=0, began=86_400)), at(100))
    assert decision.condition is not None
    assert (decision.condition.reason, decision.condition.since) == ("OverLimit", at(100))
    assert decision.deed is None


def test_an_attempt_by_a_clock_that_was_set_back_is_no_reason_to_wait() -> None:
    evicting = facts(stored=condition("Evicting", began=60, tried=["Reclaim"]))
    before = replace(evicting, tried=Tried("BlockedByPDB", at(86_400)))
    assert isinstance(decide(before, at(70)).deed, Removal)

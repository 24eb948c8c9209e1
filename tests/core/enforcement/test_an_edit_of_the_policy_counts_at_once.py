"""No state of a pod is the last one: what the policy says today decides, whoever leads."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as rules
from hypothesis import strategies as st

from gpumem_operator.enforcement.decision import Decision, decide
from gpumem_operator.enforcement.facts import Action, Facts, Tried
from gpumem_operator.enforcement.steps import Orders, Removal
from gpumem_operator.enforcement.tried import tried_in, tried_so_far
from overuse import LISTED, World, at, condition, facts, settings

unhurried = rules(deadline=None)

STAGES = [
    "OverLimit",
    "WouldAct",
    "Reclaiming",
    "Evicting",
    "Deleting",
    "Killing",
    "EvictionLoop",
    "ActionsExhausted",
]
ACTIONS: list[Action] = ["Reclaim", "Evict", "Delete", "Kill"]
LISTS = st.lists(st.sampled_from(ACTIONS), max_size=4, unique=True)


def decided(pod: Facts, seconds: float) -> tuple[Decision, Facts]:
    """The decision, and the pod once its condition is stored."""
    decision = decide(pod, at(seconds))
    return decision, replace(pod, stored=decision.condition or pod.stored)


def test_an_action_that_is_added_when_all_were_tried_is_taken() -> None:
    only = facts(settings=settings("Reclaim"), reclaimable=(), stored=condition())
    exhausted, pod = decided(only, 60)
    assert exhausted.condition is not None
    assert exhausted.condition.reason == "ActionsExhausted"
    assert "or add Evict to spec.enforcement.actions" in exhausted.condition.message
    assert decide(pod, at(100)) == Decision()
    followed = decide(replace(pod, settings=settings("Reclaim", "Evict")), at(101))
    assert followed.deed == Removal("Evict")
    assert followed.records == ()


def test_what_was_tried_is_not_tried_again_because_the_list_changed() -> None:
    killing = facts(
        settings=settings("Evict", "Reclaim", "Kill"),
        killable=(LISTED,),
        stored=condition("Killing", began=60, tried=["Reclaim"]),
    )
    assert decide(killing, at(61)).deed == Removal("Evict")
    without = replace(killing, settings=settings("Reclaim"))
    decision = decide(without, at(61))
    assert (decision.deed, decision.event) == (None, "ActionsExhausted")


def test_an_action_that_is_put_before_a_blocked_one_has_its_turn_once() -> None:
    blocked = facts(
        settings=settings("Kill", "Evict"),
        stored=condition("Evicting", began=60),
        tried=Tried("BlockedByPDB", at(60)),
    )
    decision, pod = decided(blocked, 71)
    assert [record.action for record in decision.records] == ["Kill"]
    assert decision.deed == Removal("Evict")
    assert decide(pod, at(71)).records == ()


def test_a_list_that_is_empty_is_told_as_such() -> None:
    exhausted, pod = decided(facts(settings=settings().model_copy(update={"actions": []}),
                                   stored=condition()), 60)  # fmt: skip
    assert exhausted.condition is not None
    assert "The policy lists no actions. Next step:" in exhausted.condition.message
    assert decide(pod, at(70)) == Decision()


@pytest.mark.parametrize(
    ("actions", "advice"),
    [
        (["Reclaim"], "add Evict to spec.enforcement.actions"),
        (["Evict", "Kill"], "add Delete to spec.enforcement.actions"),
    ],
)
def test_the_next_step_is_one_that_the_policy_has_not_taken(
    actions: list[str], advice: str
) -> None:
    pod = facts(
        settings=settings(*actions, evictionTimeoutSeconds=10),
        reclaimable=(),
        stored=condition("Evicting", began=0),
        tried=Tried("BlockedByPDB", at(50)),
    )
    decision = decide(pod, at(60))
    assert decision.condition is not None
    assert decision.condition.reason == "ActionsExhausted"
    assert advice in decision.condition.message


@pytest.mark.parametrize("reason", STAGES)
def test_a_longer_grace_period_begins_again_whatever_was_begun(reason: str) -> None:
    pod = facts(settings=settings("Evict", gracePeriodSeconds=600), stored=condition(reason))
    decision, pod = decided(pod, 300)
    assert decision.deed is None
    assert decision.condition is not None
    assert (decision.condition.reason, decision.condition.since) == ("OverLimit", at(0))
    assert "above for 600 s, this follows: Evict" in decision.condition.message
    assert decide(pod, at(599)) == Decision()
    assert decide(pod, at(600)).deed == Removal("Evict")


@pytest.mark.parametrize("reason", STAGES)
def test_a_shorter_grace_period_that_is_over_by_now_is_over(reason: str) -> None:
    pod = facts(settings=settings("Evict", gracePeriodSeconds=5), stored=condition(reason))
    assert decide(pod, at(6)).deed == Removal("Evict")


@pytest.mark.parametrize("reason", STAGES)
@pytest.mark.parametrize("mode", ["Audit", "Warn"])
def test_a_mode_that_does_nothing_ends_what_was_begun(mode: str, reason: str) -> None:
    decision, pod = decided(facts(mode=mode, stored=condition(reason)), 1000)
    assert decision.deed is None
    assert decision.condition is not None
    assert decision.condition.reason == {"Audit": "WouldAct", "Warn": "OverLimit"}[mode]
    assert decide(pod, at(1001)) == Decision()


@pytest.mark.parametrize("seconds", [30, 300], ids=["in the grace period", "after it"])
def test_whoever_is_over_when_audit_becomes_warn_is_told(seconds: float) -> None:
    audited = facts(mode="Audit")
    for moment in (0, seconds - 1):
        decision, audited = decided(audited, moment)
        assert decision.event == ""
    told, warned = decided(replace(audited, mode="Warn"), seconds)
    assert told.event == "OverLimit"
    assert told.condition is not None
    assert "mode is Warn" in told.condition.message
    assert told.condition.since == at(0)
    assert decide(warned, at(seconds + 1)) == Decision()


def test_whoever_is_near_when_audit_becomes_warn_is_told() -> None:
    begun, audited = decided(facts(used=7.5, mode="Audit"), 0)
    assert begun.event == ""
    told, warned = decided(replace(audited, mode="Warn"), 10)
    assert told.event == "NearLimit"
    assert told.condition is not None
    assert "is told, and nothing is done about it (mode Warn)" in told.condition.message
    assert decide(warned, at(11)) == Decision()


def test_another_threshold_counts_at_once_in_both_directions() -> None:
    lower = facts(used=7, settings=settings(warnPercent=80))
    begun, pod = decided(lower, 0)
    assert begun.event == "NearLimit"
    higher = decide(replace(pod, settings=settings(warnPercent=90)), at(1))
    assert higher.condition is not None
    assert higher.condition.reason == "WithinLimit"
    assert decide(replace(pod, settings=settings(warnPercent=85)), at(1)).event == "NearLimit"


def test_audit_records_again_what_another_list_would_have_done() -> None:
    _, audited = decided(facts(mode="Audit", stored=condition()), 100)
    longer = replace(audited, settings=settings("Reclaim", "Evict", "Delete"))
    [record] = decide(longer, at(101)).records
    assert record.message == "Mode Enforce would have done: Reclaim, then Evict, then Delete"
    shorter = replace(audited, settings=settings("Reclaim"))
    [record] = decide(shorter, at(101)).records
    assert record.message == "Mode Enforce would have done: Reclaim"


@unhurried
@given(LISTS)
def test_what_was_tried_is_read_as_it_was_written(tried: list[Action]) -> None:
    message = f"Container main holds 9Gi. Evict has begun. {tried_so_far(tried)}."
    assert set(tried_in(message)) == set(tried)


EDITS = st.tuples(LISTS, st.sampled_from(["Audit", "Warn", "Enforce"]), st.integers(1, 20))


@unhurried
@given(
    st.lists(EDITS, max_size=5),
    LISTS.filter(bool),
    st.sampled_from(["Done", "Busy", None]),
    st.sampled_from([0.0, 1e9]),
    st.lists(st.integers(0, 150), max_size=4),
)
def test_whatever_was_said_before_each_action_of_the_last_list_has_its_turn(
    edits: list[tuple[list[Action], str, int]],
    last: list[Action],
    answer: str | None,
    budget_opens: float,
    restarts: list[int],
) -> None:
    world = World(facts(killable=(LISTED,)), answer, budget_opens)
    steps = [*edits, (last, "Enforce", 100)]
    looks = 0
    for actions, mode, times in steps:
        given = settings(evictionTimeoutSeconds=60).model_copy(update={"actions": actions})
        world.facts = replace(world.facts, settings=given, mode=mode)  # type: ignore[arg-type]
        for _ in range(times):
            if looks in restarts:
                world.answers, world.tried = {}, None
            world.look(9, looks * 5)
            looks += 1
    stored = world.facts.stored
    assert stored is not None
    if world.facts.ending is None:
        waits_for_a_budget = last[-1] == "Evict" and stored.reason == "Evicting"
        assert waits_for_a_budget or (
            stored.reason == "ActionsExhausted" and set(last) <= set(tried_in(stored.message))
        )
    assert len(world.records) <= 5 * len(steps), "nothing is recorded again and again"


@pytest.mark.parametrize("reason", [*STAGES, "NearLimit"])
@pytest.mark.parametrize("used", [4, 9, None])
def test_without_a_policy_what_was_said_is_taken_back(reason: str, used: float | None) -> None:
    decision, pod = decided(facts(used=used, mode="None", stored=condition(reason)), 1000)
    assert decision.condition is not None
    assert (decision.condition.status, decision.condition.reason) == ("False", "NotJudged")
    assert (decision.deed, decision.event) == (None, "")
    assert decide(pod, at(1001)) == Decision()
    if used == 9:
        again = decide(replace(pod, mode="Enforce"), at(2000))
        assert again.condition is not None
        assert (again.condition.reason, again.condition.since) == ("OverLimit", at(2000))


def test_orders_of_a_stage_that_was_relaxed_are_withdrawn() -> None:
    reclaiming = facts(stored=condition("Reclaiming", began=60))
    assert isinstance(decide(reclaiming, at(61)).deed, Orders)
    longer = replace(reclaiming, settings=settings(gracePeriodSeconds=600))
    assert decide(longer, at(61)).deed is None

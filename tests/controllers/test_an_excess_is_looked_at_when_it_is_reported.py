"""What makes the leader look at a pod between its looks at everything."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controllers.overuse_stage import Stage
from gpumem_operator.enforcement.facts import Target
from gpumem_operator.enforcement.steps import Orders
from gpumem_operator.reports.pictures import Sender


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_the_grace_period_begins_with_the_report_that_shows_the_excess(stage: Stage) -> None:
    assert await stage.hears(7) == [], "inside its limit, it waits for the look at everything"
    assert await stage.hears(9) == ["OverLimit"]
    assert await stage.hears(9, after=59) == []
    assert await stage.hears(9, after=1) == ["Evicting", "evicted", "told train"]


async def test_a_pod_that_falls_to_its_limit_is_told_so_without_another_excess(
    stage: Stage,
) -> None:
    await stage.hears(9)
    assert await stage.hears(4) == ["WithinLimit"]
    assert await stage.hears(9) == ["OverLimit"], "and the grace period begins anew"


async def test_an_eviction_is_told_before_the_next_pod_is_treated(stage: Stage) -> None:
    stage.has_pod("other")
    await stage.hears(9)
    done = await stage.hears(9, after=61)
    evictions = [index for index, what in enumerate(done) if what == "evicted"]
    assert len(evictions) == 2
    assert [done[index + 1].split()[0] for index in evictions] == ["told", "told"]


async def test_an_eviction_that_the_leader_did_not_live_to_tell_is_told_by_the_next(
    stage: Stage,
) -> None:
    await stage.hears(9)
    stage.now += timedelta(seconds=60)
    await stage.hears(9)
    stage.cache.policies.see(stage.cluster.policy({}))
    stage.ends("train")
    stage.leads()
    assert await stage.hears(9) == ["told train"]
    assert await stage.hears(9) == []
    stage.leads()
    assert await stage.hears(9) == [], "it stands there by now"


async def test_without_its_policy_nothing_is_said_of_a_pod_any_more(stage: Stage) -> None:
    await stage.hears(9)
    stage.cache.policies.drop(("team", "training"), "uid-of-training")
    assert await stage.hears(9) == ["NotJudged"]
    assert await stage.hears(9) == []


async def test_orders_about_a_pod_that_is_not_judged_any_more_are_taken_back(stage: Stage) -> None:
    await stage.hears(9)
    [pod] = stage.cluster.pods.values()
    sender = Sender("NodeAgent", "gpu-1")
    target = Target(sender, "main", 100, 7)
    stage.orders.give(pod["metadata"]["uid"], Orders("Kill", (("Kill-1", target),)))
    assert [order.id for order in stage.orders.of(sender)] == ["Kill-1"]
    stage.ignores_the_namespace()
    assert await stage.hears(9) == []
    assert stage.orders.of(sender) == []


async def test_what_a_policy_says_of_overuse_is_about_its_latest_generation(stage: Stage) -> None:
    assert "Overuse=True of 1" in await stage.looks_at_everything(9)
    stage.edits_the_policy()
    assert await stage.looks_at_everything(9) == ["Overuse=True of 2"]
    assert "Overuse=False of 2" in await stage.looks_at_everything(4)
    stage.edits_the_policy()
    assert await stage.looks_at_everything(4) == ["Overuse=False of 3"]
    assert await stage.looks_at_everything(4) == []

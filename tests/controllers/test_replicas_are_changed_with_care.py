"""The order of a decision's steps, and what is done where a step fails. A fake API server."""

from __future__ import annotations

import pytest

from controllers.scaling_stage import Stage, entry, scaling_policy
from controllers.stored import Raw, tenant
from gpumem_operator.api.scaling import ScalingTarget
from gpumem_operator.kube.errors import ApiError, Conflict
from report_builders import GIB


async def test_a_decision_is_told_before_it_is_carried_out_and_then_noted() -> None:
    stage = Stage(serve=[10, 10])
    done = await stage.look()
    assert [what for what, _ in done] == ["status", "scale", "Normal"]
    assert done[0][1][0]["changes"][0]["toReplicas"] == 3
    assert done[1:] == [("scale", 3), ("Normal", "ScaledUp")]


async def test_nothing_is_written_where_nothing_changes() -> None:
    stage = Stage(serve=[8, 8])
    assert [what for what, _ in await stage.look()] == ["status"]
    assert await stage.look() == []
    assert await stage.look(after=1000) == []


async def test_an_edit_that_changes_no_replicas_is_told_all_the_same() -> None:
    stage = Stage(serve=[8, 8])
    await stage.look()
    ((_, row),) = list(stage.cache.policies.rows())
    targets = [ScalingTarget.model_validate(entry(targetPercent=84))]
    stage.cluster.store_status(targets, row.version + 1, dict(row.value.status))
    assert [what for what, _ in await stage.look()] == ["status"]
    assert "84% is wanted" in stage.told()[0]["message"]


async def test_a_number_of_engines_that_moves_is_written_once_a_minute() -> None:
    stage = Stage(serve=[8, 8])
    signal = {"metricName": "tgi_queue_size", "port": 80, "targetValue": "1"}
    targets = [ScalingTarget.model_validate(entry(metric="EngineSignal", engineSignal=signal))]
    stage.cluster.store_status(targets, 2, {})
    assert [what for what, _ in await stage.look(signal="0.98")] == ["status"]
    assert [await stage.look(signal=f"0.9{number}") for number in range(1, 6)] == [[]] * 5
    assert [what for what, _ in await stage.look(signal="0.96")] == ["status"]
    assert "0.96" in stage.told()[0]["message"]
    assert ("scale", 4) in await stage.look(signal="2"), "what follows does not wait"


async def test_scaling_that_stops_while_a_leader_is_new_is_told_when_it_is_no_more() -> None:
    stage = Stage(serve=[8, 8])
    await stage.look()
    stage.loses_sight()
    assert [what for what, _ in await stage.look()] == ["status"]
    assert await stage.look(after=100) == [("Warning", "TooManyUnknown")]
    assert await stage.look() == []


async def test_an_event_that_is_refused_keeps_no_replicas_from_changing() -> None:
    stage = Stage(serve=[10, 10], gone=[8])
    del stage.cluster.replicas["gone"]
    stage.cluster.errors["events"] = [ApiError("POST", "500 busy", 500)]
    assert ("scale", 3) in await stage.look()
    assert stage.cluster.errors["events"] == []


async def test_an_event_that_was_refused_is_posted_at_the_next_look() -> None:
    stage = Stage(serve=[8, 8])
    await stage.look(after=100)
    stage.loses_sight()
    stage.cluster.errors["events"] = [ApiError("POST", "500 busy", 500)]
    assert [what for what, _ in await stage.look()] == ["status"]
    assert await stage.look() == [("Warning", "TooManyUnknown")]


async def test_a_status_that_others_write_is_tried_again_from_what_they_wrote() -> None:
    stage = Stage(serve=[10, 10])
    stage.cluster.errors["status"] = [Conflict("PATCH", "409", 409)] * 2
    assert [what for what, _ in await stage.look()] == ["status", "scale", "Normal"]


async def test_without_its_status_no_decision_is_carried_out() -> None:
    stage = Stage(serve=[10, 10])
    stage.cluster.errors["status"] = [Conflict("PATCH", "409", 409)] * 99
    assert await stage.look() == []
    stage.cluster.errors["status"] = [ApiError("PATCH", "500", 500)]
    assert await stage.look() == []
    assert stage.cluster.replicas == {"serve": 2}


async def test_a_refused_change_is_a_condition_for_a_while_and_no_error_loop() -> None:
    stage = Stage(serve=[10, 10])
    stage.cluster.errors["scale"] = [ApiError("PATCH", "403 forbidden", 403)] * 99
    assert [what for what, _ in await stage.look()] == ["status"]
    done = await stage.look()
    assert done[1] == ("Warning", "NotAllowed")
    assert stage.told()[0]["reason"] == "NotAllowed"
    assert await stage.look() == []
    assert len(stage.cluster.errors["scale"]) == 98, "it was tried once"

    stage.cluster.errors.clear()
    assert ("scale", 3) in await stage.look(after=301)
    assert [one["toReplicas"] for one in stage.told()[0]["changes"]] == [3]


async def test_replicas_that_somebody_changed_meanwhile_are_left_to_the_next_look() -> None:
    stage = Stage(serve=[10, 10])
    stage.cluster.errors["scale"] = [ApiError("PATCH", "422 test failed", 422)]
    stage.cluster.meanwhile = {"serve": 1}
    assert [what for what, _ in await stage.look()] == ["status"]
    assert ("scale", 3) in await stage.look()
    assert stage.told()[0]["changes"][-1]["fromReplicas"] == 1


async def test_replicas_that_the_kind_itself_refuses_are_not_tried_at_every_look() -> None:
    stage = Stage(serve=[10, 10])
    invalid = ApiError("PATCH", "422 spec.replicas: Invalid value: 3: at most 2", 422)
    stage.cluster.errors["scale"] = [invalid] * 99
    assert [what for what, _ in await stage.look()] == ["status"]
    assert ("Warning", "Unreadable") in await stage.look()
    assert "at most 2" in stage.told()[0]["message"]
    assert await stage.look() == []
    assert len(stage.cluster.errors["scale"]) == 98, "it was tried once"


async def test_one_target_that_fails_keeps_none_of_the_others() -> None:
    stage = Stage(first=[10, 10], second=[10, 10])
    stage.cluster.errors["scale"] = [ApiError("PATCH", "500 broken", 500)]
    assert ("scale", 3) in await stage.look()
    assert stage.cluster.replicas == {"first": 2, "second": 3}


async def test_two_workloads_are_not_given_the_same_room() -> None:
    stage = Stage(first=[10, 10], second=[10, 10])
    stage.cache.tenants.see(tenant(limit="59Gi"))
    await stage.look()
    assert sorted(stage.cluster.replicas.values()) == [2, 3], "there is room for one pod more"
    await stage.look()
    assert sorted(stage.cluster.replicas.values()) == [2, 3], "and it has no pod yet"
    assert "QuotaReached" in {one["reason"] for one in stage.told()}


async def test_room_that_is_reserved_is_not_given_away() -> None:
    stage = Stage(serve=[10, 10])
    raw = tenant(limit="39Gi")
    kept = {"podUID": "unseen", "namespace": "team", "name": "p", "bytes": 12 * GIB}
    stage.cache.tenants.see(raw | {"status": {"reservations": [kept]}})
    await stage.look()
    assert stage.cluster.replicas == {"serve": 2}
    assert "has 7Gi left" in stage.told()[0]["message"]


@pytest.mark.parametrize(
    "reference",
    [
        {"kind": "Deployment", "name": "../../other/deployments/serve"},
        {"kind": "Deployment", "name": "serve?x="},
        {"kind": "Deployment", "name": ".."},
        {"apiVersion": "apps/v1/namespaces/other", "kind": "Deployment", "name": "serve"},
    ],
    ids=lambda reference: f"{reference.get('apiVersion', 'apps/v1')} {reference['name']}",
)
async def test_a_reference_never_leads_into_another_namespace(reference: Raw) -> None:
    stage = Stage(serve=[10, 10])
    raw = scaling_policy([{"targetRef": reference, "maxReplicas": 20}])
    raw["metadata"]["resourceVersion"] = "2"
    stage.cache.policies.see(raw)
    done = await stage.look()
    assert [what for what, _ in done] == ["status", "Warning"]
    assert stage.told()[0]["reason"] == "TargetNotFound"
    assert "Nothing can be called" in stage.told()[0]["message"]


async def test_an_entry_that_goes_away_leaves_nothing_behind() -> None:
    stage = Stage(serve=[8, 8])
    await stage.look()
    ((_, row),) = list(stage.cache.policies.rows())
    stage.cluster.store_status([], row.version + 1, dict(row.value.status))
    await stage.look()
    ((_, row),) = list(stage.cache.policies.rows())
    assert row.value.status["scaling"] == []
    assert row.value.status["conditions"] == []
    assert await stage.look() == []

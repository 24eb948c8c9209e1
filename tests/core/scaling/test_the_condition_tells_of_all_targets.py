"""ScalingActive, and what of `status.scaling` is worth a write."""

from __future__ import annotations

from typing import Any

import pytest

from gpumem_operator.scaling import reasons
from gpumem_operator.scaling.condition import scaling_active, settled_entries
from gpumem_operator.scaling.facts import TargetPod
from gpumem_operator.scaling.memory import Memory
from gpumem_operator.scaling.stored import decided, memory_of
from scaling_builders import decision, pods, target


def entry(reason: str, name: str = "serve", **fields: Any) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {"targetRef": reference, "reason": reason, "message": f"About {name}.", **fields}


def told(found: tuple[TargetPod, ...], **fields: Any) -> dict[str, Any]:
    """What a status says of pods, by a decision that changes nothing."""
    return decided(target().target_ref, decision(found, **fields))


def test_all_targets_follow() -> None:
    found = scaling_active([entry(reasons.ON_TARGET), entry(reasons.QUOTA_REACHED, "b")])
    assert (found.status, found.reason) == ("True", "TargetsFollow")
    assert found.message == "Replicas of 2 workloads follow GPU memory."


def test_targets_that_do_not_are_named_with_their_reasons() -> None:
    found = scaling_active([entry(reasons.ON_TARGET), entry(reasons.OTHER_SCALER, "b")])
    assert (found.status, found.reason) == ("False", "OtherScaler")
    assert found.message == ("1 of 2 workloads are not scaled. Deployment b (apps/v1): About b.")


def test_many_are_counted() -> None:
    many = [entry(reasons.NO_PODS, f"w{number}") for number in range(16)]
    assert scaling_active(many).message.endswith("And 13 more.")


def test_numbers_that_move_by_one_percent_are_no_reason_to_write() -> None:
    stored, near, far = ([told(pods(percent, percent))] for percent in (80, 81, 83))
    other = [{**stored[0], "reason": reasons.STABILIZING}]
    assert settled_entries(near, stored) == stored
    assert settled_entries(far, stored) == far
    assert settled_entries(other, stored) == other
    assert settled_entries(near, []) == near


UNKNOWN = ("Silent", "Silent", "Silent")


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (told(pods(80, 80)), told(pods(80, 80), targetPercent=84)),
        (told(pods(80, *UNKNOWN)), told(pods(80, *UNKNOWN[:2], "Timeout"))),
    ],
    ids=["another percentage is wanted", "pods are unknown for another reason"],
)
def test_what_a_message_says_beside_moving_numbers_is_written(
    before: dict[str, Any], now: dict[str, Any]
) -> None:
    moving = {"message": now["message"]}
    assert {**before, **moving} == now, "nothing else tells them apart"
    assert settled_entries([now], [before], numbers_are_old=False) == [now]


def test_what_is_stored_in_a_way_that_is_not_understood_is_forgotten() -> None:
    reference = target().target_ref
    (good,) = [decided(reference, decision(pods(100, 100)))]
    assert memory_of([good], reference).changes
    for field, value in (
        ("changes", [{"time": "yesterday", "fromReplicas": 1, "toReplicas": 2}]),
        ("recentHighest", [{"until": "never", "replicas": 1}]),
        ("recommendedReplicas", "many"),
    ):
        assert memory_of([{**good, field: value}], reference) == Memory()
    assert memory_of([entry(reasons.ON_TARGET, "another")], reference) == Memory()


def test_an_observing_policy_announces_no_change() -> None:
    told = decision(pods(100, 100)).only_told()
    assert (told.desired, told.reason, told.memory.changes) == (2, reasons.OBSERVED, ())
    assert told.message.startswith("Not done, because spec.mode is Observe: From 2 to 3 replicas.")
    steady = decision(pods(80, 80))
    assert steady.only_told() == steady


def test_the_number_of_an_engine_stands_until_it_is_old_or_something_follows() -> None:
    stored = entry(reasons.ON_TARGET, message="tell tgi_queue_size 0.41")
    moved = entry(reasons.ON_TARGET, message="tell tgi_queue_size 0.43")
    held = entry(reasons.AT_MAXIMUM, message="tell tgi_queue_size 0.95")
    assert settled_entries([moved], [stored], numbers_are_old=False) == [stored]
    assert settled_entries([moved], [stored], numbers_are_old=True) == [moved]
    assert settled_entries([held], [stored], numbers_are_old=False) == [held]

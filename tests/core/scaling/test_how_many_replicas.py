"""The decision table: what pods hold, and what follows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from gpumem_operator.scaling import reasons
from gpumem_operator.scaling.facts import TargetPod
from gpumem_operator.scaling.memory import Memory
from scaling_builders import AT_ONCE, SIGNAL, STARTING, decision, pods

TABLE: dict[str, tuple[tuple[Any, ...], int, str]] = {
    "exactly on target": ((80, 80, 80), 3, reasons.ON_TARGET),
    "a tenth above is within the tolerance": ((88, 88), 2, reasons.ON_TARGET),
    "more than a tenth above": ((89, 89), 3, reasons.SCALED_UP),
    "a tenth below is within the tolerance": ((72, 72, 72), 3, reasons.ON_TARGET),
    "far below": ((20, 20, 20, 20), 1, reasons.SCALED_DOWN),
    "full pods": ((100, 100, 100, 100), 5, reasons.SCALED_UP),
    "the sum counts and not the fullest": ((100, 60), 2, reasons.ON_TARGET),
    "over the limit counts as it is": ((160,), 2, reasons.SCALED_UP),
    "nothing held": ((0, 0, 0), 1, reasons.SCALED_DOWN),
    "unknown holds nothing when growing": ((100, 100, "NoReport"), 3, reasons.ON_TARGET),
    "unknown is full when shrinking": ((10, 10, "NoReport"), 2, reasons.SCALED_DOWN),
    "unknown does not turn shrinking into growing": ((70, "NoReport"), 2, reasons.ON_TARGET),
    "half unknown is enough": ((160, "Silent"), 2, reasons.ON_TARGET),
    "more than half unknown": ((100, "Silent", "NoReport"), 3, reasons.TOO_MANY_UNKNOWN),
    "all unknown": (("NoReport",), 1, reasons.TOO_MANY_UNKNOWN),
    "starting pods are no unknown ones": ((100, STARTING, STARTING), 3, reasons.ON_TARGET),
    "starting pods are full when shrinking": ((10, STARTING), 2, reasons.ON_TARGET),
    "none has started": ((STARTING, STARTING), 2, reasons.PODS_STARTING),
}


@pytest.mark.parametrize(("loads", "desired", "reason"), TABLE.values(), ids=TABLE.keys())
def test_replicas_follow_what_pods_hold(loads: Any, desired: int, reason: str) -> None:
    found = decision(pods(*loads), **AT_ONCE)
    assert (found.desired, found.reason) == (desired, reason)


def test_replicas_without_a_pod_yet_count_like_starting_ones() -> None:
    assert decision(pods(100), replicas=2).desired == 2, "the second will take its part"
    assert decision(pods(10, 10), replicas=6, **AT_ONCE).desired == 6, "four may be full soon"


def test_pods_of_different_sizes_count_by_their_limits() -> None:
    large, small = pods(90, limit=80 * 2**30), pods(10, limit=2**30)
    found = decision((*large, *small))
    assert (found.percent, found.desired) == (89, 3)


def test_a_pod_without_a_limit_is_unknown_and_not_empty() -> None:
    without = TargetPod("serve-9", started=True, used_bytes=2**30)
    found = decision((*pods(10), without, without))
    assert found.reason == reasons.TOO_MANY_UNKNOWN
    assert "2 of 3 started pods the metric is not known (2 NoLimit)" in found.message


@pytest.mark.parametrize(
    ("replicas", "desired", "reason"),
    [(0, 0, reasons.SCALED_TO_ZERO), (3, 3, reasons.NO_PODS)],
    ids=["switched off by somebody", "no pod to measure"],
)
def test_without_pods_nothing_is_decided(replicas: int, desired: int, reason: str) -> None:
    found = decision((), replicas=replicas, minReplicas=5)
    assert (found.desired, found.reason) == (desired, reason)


@pytest.mark.parametrize("load", [10, 80, 160, "Silent"])
def test_what_is_out_of_bounds_is_brought_back_at_once_whatever_is_known(load: Any) -> None:
    assert decision(pods(load), minReplicas=3).desired == 3
    assert decision(pods(*[load] * 9), maxReplicas=4).desired == 4


def test_a_bound_that_changes_what_is_held_is_told_before_that_it_is_held() -> None:
    found = decision(pods(*["Silent"] * 9), maxReplicas=6)
    assert found.message.startswith(
        "From 9 to 6 replicas: maxReplicas is 6. Then: Of 9 of 9 started pods the metric is not"
    )


def test_bounds_have_a_word_of_their_own() -> None:
    found = decision(pods(100, 100), maxReplicas=2)
    assert (found.desired, found.reason) == (2, reasons.AT_MAXIMUM)
    assert "3 replicas instead of 2 would be right; maxReplicas is 2." in found.message
    found = decision(pods(10, 10), minReplicas=2, **AT_ONCE)
    assert (found.desired, found.reason) == (2, reasons.AT_MINIMUM)


def test_a_preallocating_server_is_not_scaled_by_what_it_holds() -> None:
    for load in (100, 160, 10):
        found = decision(pods(load, load, preallocator="vLLM"), **AT_ONCE)
        assert (found.desired, found.reason) == (2, reasons.PREALLOCATES)
    assert "2 of its pods hold memory whether they are busy or not" in found.message
    assert "serve-0: vLLM" in found.message
    assert "EngineSignal" in found.message


def _engines(*values: str | None) -> tuple[TargetPod, ...]:
    return tuple(
        TargetPod(
            f"serve-{number}",
            started=True,
            preallocator="vLLM",
            signal=None if value is None else Fraction(value),
            signal_unknown="Timeout" if value is None else None,
        )
        for number, value in enumerate(values)
    )


@pytest.mark.parametrize(
    ("values", "desired", "reason"),
    [
        (("0.8", "0.8"), 2, reasons.ON_TARGET),
        (("0.95", "0.95"), 3, reasons.SCALED_UP),
        (("0.2", "0.2", "0.2"), 1, reasons.SCALED_DOWN),
        (("0", "0"), 1, reasons.SCALED_DOWN),
        (("1", "1", None), 3, reasons.ON_TARGET),
        (("0.1", "0.1", None), 2, reasons.SCALED_DOWN),
        (("1", None, None), 3, reasons.TOO_MANY_UNKNOWN),
    ],
    ids=[
        "on target",
        "above",
        "below",
        "idle",
        "unread holds nothing when growing",
        "unread is on target when shrinking",
        "most are unread",
    ],
)
def test_an_engine_signal_scales_what_preallocates(values: Any, desired: int, reason: str) -> None:
    found = decision(_engines(*values), metric="EngineSignal", engineSignal=SIGNAL, **AT_ONCE)
    assert (found.desired, found.reason) == (desired, reason)
    assert found.percent is None


def test_a_message_has_the_numbers() -> None:
    found = decision(pods(100, 90, 95))
    assert found.message == (
        "From 3 to 4 replicas. Its pods hold 95% of their limits (28.5Gi of 30Gi in 3 pods), and"
        " 80% is wanted: 4 replicas instead of 3 would be right."
    )
    found = decision(_engines("0.95", "0.97"), metric="EngineSignal", engineSignal=SIGNAL)
    assert "vllm:kv_cache_usage_perc 0.96 on average of 2, and 0.8 is wanted" in found.message


def test_the_change_is_remembered_with_its_reason() -> None:
    (change,) = decision(pods(100, 100)).memory.changes
    assert (change.before, change.after) == (2, 3)
    assert change.message.startswith("From 2 to 3")


def test_a_change_that_was_not_made_is_forgotten() -> None:
    announced = decision(pods(100, 100)).memory
    again = decision(pods(80, 80), memory=announced)
    assert again.memory.changes == ()
    assert decision(pods(80, 80, 80), memory=announced).memory.changes == announced.changes
    assert Memory().settled(3) == Memory()

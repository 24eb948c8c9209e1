"""What holds on every trace: noise, unknown pods, small quotas and new leaders among them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gpumem_operator.api.scaling import ScalingTarget
from gpumem_operator.scaling.decision import Decision, decide
from gpumem_operator.scaling.facts import TargetFacts
from gpumem_operator.scaling.memory import Memory
from gpumem_operator.scaling.stored import decided, memory_of
from scaling_builders import NOW, STARTING, pods, room, target

thorough = settings(max_examples=150, deadline=None)
PERIOD = 15
POD_GIB = 10
loads = st.one_of(st.integers(0, 130), st.sampled_from(["Silent", "NoReport", STARTING]))
paces = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["Pods", "Percent"]),
            "value": st.integers(1, 100),
            "periodSeconds": st.sampled_from([15, 60, 300, 1800]),
        }
    ),
    max_size=2,
)
windows = st.sampled_from([0, 30, 300, 3600])


@st.composite
def targets(draw: st.DrawFn) -> ScalingTarget:
    least = draw(st.integers(1, 5))
    return target(
        minReplicas=least,
        maxReplicas=draw(st.integers(least, 12)),
        targetPercent=draw(st.integers(10, 100)),
        scaleUp={"stabilizationSeconds": draw(windows), "policies": draw(paces)},
        scaleDown={"stabilizationSeconds": draw(windows), "policies": draw(paces)},
    )


@dataclass(frozen=True)
class Moment:
    """What is seen at one time: loads of the pods in turn, and the quota."""

    seen: tuple[Any, ...]
    quota_gib: int
    pause: int


moments = st.builds(
    Moment,
    seen=st.lists(loads, min_size=1, max_size=6).map(tuple),
    quota_gib=st.integers(0, 150),
    pause=st.sampled_from([PERIOD, 3 * PERIOD, 400]),
)
traces = st.lists(moments, min_size=1, max_size=40)


def play(wanted: ScalingTarget, trace: Sequence[Moment], *, restarts: bool) -> list[Decision]:
    """Decide on each moment; what was desired is there at the next one."""
    replicas, now, memory = wanted.min_replicas, NOW, Memory()
    found = []
    for moment in trace:
        facts = facts_at(moment, replicas)
        made = decide(wanted, facts, memory, now=now)
        memory = made.memory
        if restarts:
            written = json.dumps([decided(wanted.target_ref, made)])
            memory = memory_of(json.loads(written), wanted.target_ref)
        found.append(made)
        replicas, now = made.desired, now + moment.pause
    return found


def facts_at(moment: Moment, replicas: int) -> TargetFacts:
    seen = [moment.seen[number % len(moment.seen)] for number in range(replicas)]
    left = moment.quota_gib - replicas * POD_GIB
    return TargetFacts(replicas, pods(*seen), (room(left, pod=POD_GIB),))


@thorough
@given(targets(), traces)
def test_replicas_are_always_inside_bounds_and_room(
    wanted: ScalingTarget, trace: list[Moment]
) -> None:
    for moment, made in zip(trace, play(wanted, trace, restarts=False), strict=True):
        assert made.desired <= wanted.max_replicas
        assert made.desired >= min(wanted.min_replicas, made.replicas)
        if made.desired > made.replicas:
            assert made.desired * POD_GIB <= moment.quota_gib


@thorough
@given(targets(), traces)
def test_a_new_leader_at_any_time_decides_as_the_one_before(
    wanted: ScalingTarget, trace: list[Moment]
) -> None:
    told = [
        [(made.desired, made.reason, made.message) for made in play(wanted, trace, restarts=again)]
        for again in (False, True)
    ]
    assert told[0] == told[1]


@thorough
@given(targets(), traces)
def test_nothing_shrinks_within_the_window_after_it_grew(
    wanted: ScalingTarget, trace: list[Moment]
) -> None:
    window = wanted.scale_down.stabilization_seconds
    grown, now = None, NOW
    for moment, made in zip(trace, play(wanted, trace, restarts=False), strict=True):
        if made.desired < made.replicas and grown is not None:
            assert now - grown >= window
        if made.desired > made.replicas:
            grown = now
        now += moment.pause


@thorough
@given(
    st.lists(st.lists(st.integers(73, 87), min_size=1, max_size=5), max_size=60),
    st.integers(1, 12),
)
def test_noise_within_the_tolerance_changes_nothing(noise: list[list[int]], replicas: int) -> None:
    wanted = target(scaleDown={"stabilizationSeconds": 0})
    trace = [Moment(tuple(one), 1000, PERIOD) for one in noise]
    memory = Memory(latest=replicas)
    for step, moment in enumerate(trace):
        made = decide(wanted, facts_at(moment, replicas), memory, now=NOW + step * PERIOD)
        assert not made.changes
        memory = made.memory


@thorough
@given(
    st.integers(0, 200),
    st.integers(1, 20),
    st.lists(st.integers(-100, 100), min_size=80, max_size=80),
)
def test_a_steady_load_under_noise_comes_to_rest_without_going_back_and_forth(
    load_gib: int, replicas: int, noise: list[int]
) -> None:
    """The pods share the load, and each measurement is off by up to 1 %."""
    memory, path, now = Memory(), [replicas], NOW
    for off in noise:
        percent = load_gib * 100 / (replicas * POD_GIB) * (1 + off / 10_000)
        made = decide(target(), TargetFacts(replicas, pods(*[percent] * replicas)), memory, now=now)
        memory, replicas, now = made.memory, made.desired, now + PERIOD
        path.append(replicas)
    turns = [
        (before, here, after)
        for before, here, after in zip(path, path[1:], path[2:], strict=False)
        if (here - before) * (after - here) < 0
    ]
    assert turns == []
    assert len(set(path[40:])) == 1


@thorough
@given(targets(), st.integers(1, 12), st.sampled_from([0, 10, 60, 79, 95, 130]), st.integers(0, 12))
def test_pods_that_become_unknown_never_make_a_change_larger(
    wanted: ScalingTarget, replicas: int, load: int, hidden: int
) -> None:
    seen = [load] * replicas
    unknown: list[Any] = [*seen[hidden:], *["Silent"] * min(hidden, replicas)]
    made, less = (
        decide(wanted, TargetFacts(replicas, pods(*one)), Memory(latest=replicas), now=NOW)
        for one in (seen, unknown)
    )
    low, high = sorted((replicas, made.desired))
    assert low <= less.desired <= high
    if 2 * hidden > replicas and wanted.min_replicas <= replicas <= wanted.max_replicas:
        assert not less.changes, "more than half unknown"

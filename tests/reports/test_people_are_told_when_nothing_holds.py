"""Events on pods: when nothing holds the limit any more, and when a cap was hit; not too often."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import gpumem_shim
from enforcement_evidence import framework, process, row, shim, use
from gpumem_operator.reports.cap_hits import FRAMEWORKS, MOST_REMEMBERED, CapHits, CapPlace
from gpumem_operator.reports.enforcement import enforcers_of
from gpumem_operator.reports.incidents import MOST_AT_ONCE, PAUSE_SECONDS, Incidents
from gpumem_operator.reports.pictures import ProcessReading
from gpumem_operator.reports.snapshot import PodView, Snapshot
from gpumem_operator.reports.store import SILENT_AFTER_SECONDS
from gpumem_operator.reports.uses import PodUse
from report_builders import container

LATER = SILENT_AFTER_SECONDS + 1
BEGAN = "2026-03-01T12:00:00Z"
HELD, FREE = use(process()), use(process(claim=None))
TORCH = CapPlace("pod-1", "main", "torch")


def leader() -> Incidents:
    """One that began at 0, when the pods of these tests had long been there."""
    return Incidents(0, since=BEGAN)


def seen(one: PodUse, hits: int = 0, uid: str = "pod-1") -> Snapshot:
    view = PodView(one, None, {}, enforcers=enforcers_of(one))
    return Snapshot({uid: view}, cap_hits={TORCH: hits} if hits else {})


def told(incidents: Incidents, snapshot: Snapshot, now: float) -> list[str]:
    return [one.reason for one in incidents.look(snapshot, now)]


def test_a_fall_is_told_once_and_again_only_after_a_pause() -> None:
    incidents = leader()
    assert told(incidents, seen(HELD), 1) == []
    assert told(incidents, seen(FREE), 2) == ["LimitNotHeld"]
    assert told(incidents, seen(FREE), 3) == []
    assert told(incidents, seen(HELD), 4) == []
    assert told(incidents, seen(FREE), 5) == [], "it flaps"
    assert told(incidents, seen(FREE), 2 + PAUSE_SECONDS) == ["LimitNotHeld"]


def test_the_message_says_which_process_why_and_where_to_look() -> None:
    incidents = leader()
    [one] = incidents.look(seen(FREE), LATER)
    assert "NoShim (a process without the shim is on the GPU" in one.message
    assert "(process 1)" in one.message
    assert "kubectl gpumem why pod/name-of-pod-1 -n team." in one.message


def test_where_the_policy_only_observes_nothing_is_to_hold_and_later_it_is_new() -> None:
    incidents = leader()
    assert incidents.look(seen(FREE), 1, observed=lambda pod: pod.policy == "training") == []
    assert told(incidents, seen(FREE), LATER) == ["LimitNotHeld"]


def test_what_was_told_before_a_policy_only_observed_is_told_again_after_it() -> None:
    incidents = leader()
    assert told(incidents, seen(FREE), LATER) == ["LimitNotHeld"]
    assert incidents.look(seen(FREE), LATER + 1, observed=lambda _: True) == []
    assert told(incidents, seen(FREE), LATER + 700) == ["LimitNotHeld"]


def test_a_new_leader_repeats_nothing_that_was_so_before_it() -> None:
    incidents = leader()
    assert told(incidents, seen(FREE, hits=7), 1) == []
    assert told(incidents, seen(FREE, hits=7), LATER) == []
    assert told(incidents, seen(FREE, hits=8), LATER + 1) == ["CapHit"]


def test_a_pod_that_starts_without_being_held_is_told() -> None:
    assert told(leader(), seen(FREE), LATER) == ["LimitNotHeld"]


def test_a_pod_that_a_new_leader_is_the_first_to_see_is_told_at_once() -> None:
    fresh = replace(FREE, pod=replace(FREE.pod, created="2026-03-01T12:00:01Z"))
    assert told(leader(), seen(fresh), 1) == ["LimitNotHeld"]


def test_hits_of_a_pod_that_a_new_leader_is_the_first_to_see_are_told_at_once() -> None:
    young = replace(HELD, pod=replace(HELD.pod, created="2026-03-01T12:00:01Z"))
    assert told(leader(), seen(young, hits=3), 1) == ["CapHit"]


def test_hits_of_one_framework_hide_none_of_another() -> None:
    incidents, cupy = leader(), TORCH._replace(framework="cupy")
    both = replace(seen(HELD), cap_hits={TORCH: 3, cupy: 1})
    [one] = incidents.look(both, LATER)
    assert one.message.startswith(
        "torch in container main ran into its memory cap 3 times, cupy in container main ran into"
        " its memory cap once: allocations failed"
    )
    assert told(incidents, both, LATER + PAUSE_SECONDS) == []


def test_hits_that_could_not_be_posted_are_told_after_the_pause() -> None:
    incidents = leader()
    told(incidents, seen(HELD, hits=1), 1)
    [one] = incidents.look(seen(HELD, hits=3), LATER)
    incidents.take_back(one)
    assert told(incidents, seen(HELD, hits=3), LATER + 1) == []
    [again] = incidents.look(seen(HELD, hits=4), LATER + PAUSE_SECONDS)
    assert "ran into its memory cap 3 times" in again.message


def test_a_container_without_a_limit_hides_no_other() -> None:
    whole, shared = container("a-whole", limit=None), container("trainer")
    both = use(
        row(process(claim=None), name="a-whole"),
        row(process(claim=None), name="trainer"),
        containers=(whole, shared),
    )
    assert seen(both).pods["pod-1"].enforcer.reason == "NoLimit"
    [one] = leader().look(seen(both), LATER)
    assert one.message.startswith("Nothing holds the GPU memory limit of container trainer: NoShim")


def test_a_container_that_falls_beside_one_that_was_told_is_told_too() -> None:
    incidents, pair = leader(), (container("a"), container("b"))
    free, held = (process(claim=None), process())
    first = use(row(free, name="a"), row(held, name="b"), containers=pair)
    second = use(row(free, name="a"), row(free, name="b"), containers=pair)
    assert told(incidents, seen(first), LATER) == ["LimitNotHeld"]
    assert told(incidents, seen(second), LATER + PAUSE_SECONDS) == ["LimitNotHeld"]
    assert told(incidents, seen(second), LATER + 2 * PAUSE_SECONDS) == []


def test_another_reason_is_told_once_until_something_holds_the_limit_again() -> None:
    incidents, over = leader(), use(process(9, claim=None))
    later = LATER
    for one, expected in (
        (FREE, ["LimitNotHeld"]),
        (over, ["LimitNotHeld"]),
        (FREE, []),
        (over, []),
        (HELD, []),
        (over, ["LimitNotHeld"]),
    ):
        assert told(incidents, seen(one), later) == expected
        later += PAUSE_SECONDS


def test_what_is_unknown_for_a_while_was_not_held_meanwhile() -> None:
    incidents = leader()
    assert told(incidents, seen(FREE), LATER) == ["LimitNotHeld"]
    assert told(incidents, seen(use(process("Timeout"))), LATER + PAUSE_SECONDS) == []
    assert told(incidents, seen(FREE), LATER + 2 * PAUSE_SECONDS) == []


def test_what_could_not_be_posted_is_told_after_the_pause() -> None:
    incidents = leader()
    [one] = incidents.look(seen(FREE), LATER)
    incidents.take_back(one)
    assert told(incidents, seen(FREE), LATER + 1) == []
    assert told(incidents, seen(FREE), LATER + PAUSE_SECONDS) == ["LimitNotHeld"]


def test_what_finds_no_room_is_told_at_a_later_look() -> None:
    incidents = leader()
    assert incidents.look(seen(FREE), LATER, room=0) == []
    assert told(incidents, seen(FREE), LATER + 1) == ["LimitNotHeld"]


def test_what_is_not_known_is_no_fall() -> None:
    incidents = leader()
    told(incidents, seen(HELD), 1)
    assert told(incidents, seen(use(process("NotAvailable"))), LATER) == []
    assert told(incidents, seen(use(process(), containers=())), LATER) == []


def test_many_pods_at_once_are_told_little_by_little() -> None:
    uids = [f"pod-{n}" for n in range(MOST_AT_ONCE + 5)]
    uses = {uid: replace(FREE, pod=replace(FREE.pod, uid=uid)) for uid in uids}
    pods = {uid: seen(one, uid=uid).pods[uid] for uid, one in uses.items()}
    incidents = leader()
    assert len(incidents.look(Snapshot(pods), LATER)) == MOST_AT_ONCE
    assert len(incidents.look(Snapshot(pods), LATER + 1)) == 5
    assert incidents.look(Snapshot(pods), LATER + 2) == []


def hits(count: int, **fields: int) -> ProcessReading:
    counted = framework().model_copy(update={"cap_hits": count})
    return replace(process(claim=shim(counted)), **fields)  # type: ignore[arg-type]


def test_hits_of_a_container_are_summed_over_processes_and_their_ends() -> None:
    sums = CapHits()
    sums.advance([use(hits(2), hits(1, pid=2))])
    assert sums.totals == {TORCH: 3}
    sums.advance([use(hits(5), hits(1, pid=2))])
    sums.advance([use(hits(5))])
    assert sums.totals == {TORCH: 6}
    sums.advance([use(hits(1, start_time=99))])
    assert sums.totals == {TORCH: 7}, "a new process under an old PID begins anew"
    sums.keep([])
    assert sums.totals == {}


def test_hits_of_a_process_that_was_not_seen_for_a_while_are_not_counted_again() -> None:
    sums = CapHits()
    counted = use(hits(7, start_time=5))
    for one in (counted, use(process("Timeout", claim=None)), counted, use(), counted):
        sums.advance([one])
    assert sums.totals == {TORCH: 7}
    sums.advance([use(hits(7, pid=4711, start_time=5))])
    assert sums.totals == {TORCH: 7}, "the agent knows the process by another PID"
    sums.advance([use(hits(9, start_time=5))])
    assert sums.totals == {TORCH: 9}


def test_names_that_a_workload_invents_make_one_sum_together() -> None:
    sums, other = CapHits(), CapPlace("pod-1", "main", "other")
    for number in range(5):
        invented = framework().model_copy(update={"cap_hits": 1, "name": f"f{number}"})
        sums.advance([use(process(claim=shim(framework(), invented)))])
    assert set(sums.totals) <= {TORCH, other}
    assert sums.totals[other] == 1


def test_no_more_processes_are_remembered_than_a_pod_may_have() -> None:
    sums = CapHits()
    for start in range(MOST_REMEMBERED + 5):
        sums.advance([use(hits(1, start_time=start))])
    before = sums.totals[TORCH]
    sums.advance([use(hits(1, start_time=MOST_REMEMBERED + 4))])
    assert sums.totals[TORCH] == before, "the latest is remembered"
    sums.advance([use(hits(1, start_time=0))])
    assert sums.totals[TORCH] == before + 1, "the first is forgotten"


def test_a_count_that_falls_takes_nothing_away() -> None:
    sums = CapHits()
    sums.advance([use(hits(5))])
    sums.advance([use(hits(1))])
    assert sums.totals == {TORCH: 5}


def test_every_framework_that_the_shim_caps_has_a_sum_of_its_own() -> None:
    folder = Path(gpumem_shim.__file__).parent / "frameworks"
    sources = "".join(one.read_text() for one in folder.glob("*.py"))
    assert set(re.findall(r'^    name = "(\w+)"', sources, re.MULTILINE)) == FRAMEWORKS

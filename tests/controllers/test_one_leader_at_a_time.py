"""Who may lead, by table, and by simulated processes with slow requests and wrong wall clocks."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpumem_operator.kube.election import (
    DEFAULT_TIMINGS,
    Claim,
    Sighting,
    Step,
    Timings,
    claimed,
    decide,
    lease_object,
    observe,
    read_claim,
    released,
)

OTHER = Claim(holder="other", duration_seconds=15, acquired="a", renewed="r", transitions=3)
OURS = Claim(holder="us", duration_seconds=15, acquired="a", renewed="r", transitions=3)


@pytest.mark.parametrize(
    ("claim", "seen_for", "step"),
    [
        pytest.param(Claim(), 0, Step.TAKE, id="nobody ever led"),
        pytest.param(OURS, 0, Step.RENEW, id="we lead"),
        pytest.param(OURS, 999, Step.RENEW, id="we lead, and nobody took it while we were silent"),
        pytest.param(OTHER, 0, Step.WAIT, id="another leads"),
        pytest.param(OTHER, 14.9, Step.WAIT, id="another is silent, not for long enough"),
        pytest.param(OTHER, 15, Step.TAKE, id="another is silent for too long"),
        pytest.param(released(OTHER, wall_time="w"), 0, Step.TAKE, id="another let go"),
    ],
)
def test_what_a_candidate_does(claim: Claim, seen_for: float, step: Step) -> None:
    assert decide(Sighting(claim, 100.0), "us", 100.0 + seen_for) is step


def test_silence_counts_from_when_we_first_saw_it_whatever_the_other_wrote() -> None:
    first = observe(None, OTHER, 50.0)
    assert observe(first, OTHER, 60.0) == first
    renewed = claimed(OTHER, "other", wall_time="later", timings=DEFAULT_TIMINGS)
    assert observe(first, renewed, 60.0).since == 60.0


def test_a_renewal_keeps_when_we_began_and_a_change_of_hands_is_counted() -> None:
    renewal = claimed(OURS, "us", wall_time="now", timings=DEFAULT_TIMINGS)
    assert (renewal.acquired, renewal.renewed, renewal.transitions) == ("a", "now", 3)
    change = claimed(OTHER, "us", wall_time="now", timings=DEFAULT_TIMINGS)
    assert (change.acquired, change.renewed, change.transitions) == ("now", "now", 4)
    first = claimed(Claim(), "us", wall_time="now", timings=DEFAULT_TIMINGS)
    assert (first.holder, first.transitions, first.duration_seconds) == ("us", 0, 15)


def test_a_release_shortens_the_lease_and_keeps_the_count() -> None:
    left = released(OURS, wall_time="now")
    assert (left.holder, left.duration_seconds, left.transitions) == ("", 1, 3)


def test_what_is_written_is_read_back_and_keeps_what_others_wrote() -> None:
    stored = {"metadata": {"name": "l", "resourceVersion": "5"}, "spec": {"strategy": "Oldest"}}
    written = lease_object(stored, OURS, name="l", namespace="n")
    assert read_claim(written) == OURS
    assert written["spec"]["strategy"] == "Oldest"
    assert written["metadata"]["resourceVersion"] == "5"
    assert read_claim({"spec": {}}) == Claim()


@pytest.mark.parametrize("wrong", [(10, 10.0, 2.0), (15, 2.0, 2.0), (15, 10.0, 0.0)])
def test_periods_that_would_allow_two_leaders_are_refused(wrong: tuple[int, float, float]) -> None:
    with pytest.raises(ValueError, match="longer than the next"):
        Timings(*wrong)


@dataclass
class Process:
    """A process that decides by the pure functions, with requests that take their time."""

    name: str
    start: float
    delays: list[float]
    timings: Timings
    sighting: Sighting | None = None
    leads: list[tuple[float, float]] = field(default_factory=list)
    """From when to when it may write."""


@settings(max_examples=300, deadline=None)
@given(
    starts=st.lists(st.floats(0, 30), min_size=2, max_size=4),
    delays=st.lists(st.floats(0, 40), min_size=8, max_size=60),
)
def test_never_do_two_processes_lead_at_once(starts: list[float], delays: list[float]) -> None:
    timings = DEFAULT_TIMINGS
    processes = [
        Process(f"p{index}", start, delays[index:] + delays[:index], timings)
        for index, start in enumerate(starts)
    ]
    stored, version = Claim(), 0
    # Each round of a process: read, then write what it decided; each takes a delay of its own, and
    # a request that takes too long is given up by the process and still done by the server.
    agenda = [(process.start, index, "read", 0, 0.0) for index, process in enumerate(processes)]
    for _ in range(400):
        agenda.sort()
        moment, index, what, expected, began = agenda.pop(0)
        process = processes[index]
        delay = process.delays.pop(0) if process.delays else 0.1
        if what == "read":
            process.sighting = observe(process.sighting, stored, moment)
            if decide(process.sighting, process.name, moment) is Step.WAIT:
                agenda.append((moment + timings.retry_seconds, index, "read", 0, 0.0))
            else:
                agenda.append((moment + delay, index, "write", version, moment))
            continue
        if expected == version:
            stored = claimed(stored, process.name, wall_time=str(moment), timings=process.timings)
            version += 1
            answered = moment - began <= timings.renew_seconds - timings.retry_seconds
            if answered:
                process.leads.append((moment, began + timings.renew_seconds))
        agenda.append((moment + timings.retry_seconds, index, "read", 0, 0.0))
    terms = sorted(
        (begin, end, process.name)
        for process in processes
        for begin, end in process.leads
        if end > begin
    )
    for begin, end, name in terms:
        for later_begin, _, later_name in terms:
            assert name == later_name or not begin <= later_begin < end

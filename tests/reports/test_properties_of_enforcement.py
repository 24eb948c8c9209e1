"""Whatever the evidence is, these hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from enforcement_evidence import enforcer, framework, process, row, shim, use
from gpumem_operator.reports.attribution import attribute
from gpumem_operator.reports.enforcement import enforcers_of
from gpumem_operator.reports.enforcer import strength, weakest
from gpumem_operator.reports.gpu_names import PodNames
from gpumem_operator.reports.pictures import ProcessReading, Sender, picture_of
from gpumem_operator.reports.process_hold import hold_of
from gpumem_operator.reports.reasons import REASONS
from gpumem_operator.reports.store import SILENT_AFTER_SECONDS
from report_builders import GIB, OTHER_GPU, container, measured, report
from report_builders import process as sent

SIZES = st.sampled_from([0.5, 1, 3, 4, 7, 8, 9])
CLAIMS = st.none() | st.builds(
    lambda caps, reserve, outside, more: shim(*caps, *more, reserve=reserve, outside=outside),
    st.lists(SIZES.map(framework), max_size=2),
    st.none() | SIZES,
    st.sampled_from([0, 0.5, 2]),
    st.lists(
        st.sampled_from(["NotStarted", "Platform"]).map(
            lambda why: framework(None, name="jax", not_capped=why)
        ),
        max_size=1,
    ),
)
PROCESSES: Any = st.builds(
    process,
    SIZES | st.sampled_from(["NotAvailable", "DriverHidesMemory"]),
    pid=st.integers(1, 999),
    claim=CLAIMS,
    only_claimed=st.booleans(),
    mps=st.none() | SIZES,
    driver=st.none() | SIZES,
)
ROWS = st.lists(PROCESSES, max_size=4)


@given(ROWS)
def test_every_reason_is_one_that_people_are_told_about(processes: list[ProcessReading]) -> None:
    found = enforcer(row(*processes))
    assert (found.reason in REASONS) == (found.kind in ("None", "Unknown"))


@given(ROWS, PROCESSES)
def test_a_process_without_a_shim_never_strengthens(
    processes: list[ProcessReading], one: ProcessReading
) -> None:
    bare = replace(one, claim=None, mps=False, driver_limit_bytes=None)
    before = enforcer(row(*processes))
    after = enforcer(row(*processes, bare))
    assert strength(after) <= strength(before)


@given(ROWS, st.permutations(range(4)))
def test_the_order_of_processes_does_not_matter(
    processes: list[ProcessReading], order: list[int]
) -> None:
    mixed = [processes[place] for place in order if place < len(processes)]
    assert enforcer(row(*processes)).kind == enforcer(row(*mixed)).kind


@given(ROWS, ROWS)
def test_the_weakest_container_and_card_win(
    first: list[ProcessReading], second: list[ProcessReading]
) -> None:
    here, there = row(*first), row(*second, name="other")
    both = (container(), container("other"))
    each = enforcers_of(use(here, there, containers=both))
    assert weakest(each.values()) == enforcer(here, there, containers=both)
    assert each["main"].kind == enforcer(here).kind
    if first and second:
        moved = [replace(one, gpu=OTHER_GPU) for one in second]
        cards = enforcer(row(*first), row(*moved, gpu=OTHER_GPU))
        alone = enforcer(row(*first)), enforcer(row(*moved, gpu=OTHER_GPU))
        assert cards.kind == weakest(alone).kind


@given(ROWS)
def test_what_is_held_is_measured_and_within_the_limit(processes: list[ProcessReading]) -> None:
    held = row(*processes)
    kind = enforcer(held).kind
    if kind in ("Driver", "MPS", "Framework"):
        assert held.amount.bytes is None or held.amount.bytes <= 8 * GIB
    if kind in ("MPS", "Framework"):
        assert held.amount.known
        bounds = [hold_of(one).bound_bytes for one in processes]
        assert None not in bounds
        assert sum(bound or 0 for bound in bounds) <= 8 * GIB


@given(st.floats(SILENT_AFTER_SECONDS + 1, 1e6))
def test_stale_reports_are_no_evidence(age: float) -> None:
    pod = measured(sidecar=True)
    sender = Sender("Sidecar", "pod-1")
    told = picture_of(report(sent(GIB), agent=False), sender, 0.0, PodNames())
    pictures = {Sender("Sidecar", pod.uid): told}
    fresh = attribute([pod], pictures, SILENT_AFTER_SECONDS).pods[pod.uid]
    stale = attribute([pod], pictures, age).pods[pod.uid]
    assert str(weakest(enforcers_of(fresh).values())) == "None: NoShim"
    assert str(weakest(enforcers_of(stale).values())) == "Unknown: Silent"

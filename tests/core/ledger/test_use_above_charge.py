"""UsingMoreThanCharged: from numbers alone, and without needless writes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpumem_operator.api.measure import Measure
from gpumem_operator.api.quantity import GIB
from gpumem_operator.api.transitions import Finding
from gpumem_operator.ledger.charged_pod import ChargedPod
from gpumem_operator.ledger.use_above_charge import (
    MOST_LISTED,
    pods_over_charge,
    using_more_than_charged,
)

thorough = settings(max_examples=300, deadline=None)
Rows = list[dict[str, Any]]


def pod(name: str, charged: int | None, used: int | None, *, started: bool = True) -> ChargedPod:
    """Amounts in bytes."""
    unknown = None if used is not None else "Silent"
    return ChargedPod("team", name, charged, Measure(used, unknown, started, "none"))


def told(*pods: ChargedPod, stored: Rows | None = None) -> tuple[Rows, Finding]:
    listed = pods_over_charge(pods, stored or [])
    return listed, using_more_than_charged(pods, listed)


amounts = st.integers(0, 100) | st.integers(0, 2**45)
pods_of_a_tenant = st.lists(
    st.builds(
        pod,
        st.text("abcde", min_size=1, max_size=2),
        st.none() | amounts,
        st.none() | amounts,
        started=st.booleans(),
    ),
    max_size=16,
    unique_by=lambda one: one.name,
).map(tuple)


def is_over(one: ChargedPod) -> bool:
    used, charged = one.measure.used_bytes, one.charged_bytes
    return used is not None and charged is not None and used > charged


@thorough
@given(pods_of_a_tenant)
def test_it_is_true_exactly_where_a_pod_is_known_to_hold_more(pods: tuple[ChargedPod, ...]) -> None:
    _, finding = told(*pods)
    assert (finding.status == "True") == any(map(is_over, pods))


@thorough
@given(pods_of_a_tenant)
def test_what_is_not_known_is_listed_nowhere_and_never_counts_as_less(
    pods: tuple[ChargedPod, ...],
) -> None:
    listed, finding = told(*pods)
    over = {one.name for one in pods if is_over(one)}
    assert {row["name"] for row in listed} <= over
    assert len(listed) == min(len(over), MOST_LISTED)
    silent = any(one.measure.missing for one in pods)
    if silent:
        assert finding.status != "False"


@thorough
@given(pods_of_a_tenant)
def test_the_furthest_over_come_first(pods: tuple[ChargedPod, ...]) -> None:
    listed, _ = told(*pods)
    shown = [row["usedBytes"] - row["chargedBytes"] for row in listed]
    assert shown == sorted(shown, reverse=True)
    by_name = {one.name: one for one in pods}
    for row in listed:
        assert row["usedBytes"] == by_name[row["name"]].measure.used_bytes


@thorough
@given(pods_of_a_tenant, st.randoms(use_true_random=False))
def test_what_measurement_wavers_by_changes_nothing(
    pods: tuple[ChargedPod, ...], random: Any
) -> None:
    listed, finding = told(*pods)
    wavering = tuple(wavered(one, random) for one in pods)
    again, found = told(*wavering, stored=listed)
    assert again == listed
    assert found == finding


def wavered(one: ChargedPod, random: Any) -> ChargedPod:
    """The pod with up to half a percent more or less, on the same side of its charge."""
    used, charged = one.measure.used_bytes, one.charged_bytes
    if used is None:
        return one
    moved = random.randint(used - used // 200, used + used // 200)
    if charged is not None:
        moved = max(moved, charged + 1) if used > charged else min(moved, charged)
    return pod(one.name, charged, moved, started=one.measure.started)


@thorough
@given(pods_of_a_tenant, pods_of_a_tenant)
def test_whatever_was_stored_no_shown_number_contradicts_the_condition(
    before: tuple[ChargedPod, ...], pods: tuple[ChargedPod, ...]
) -> None:
    listed, finding = told(*pods, stored=pods_over_charge(before))
    assert all(row["usedBytes"] > row["chargedBytes"] for row in listed)
    assert (finding.status == "True") == any(map(is_over, pods))


def test_the_message_has_the_worst_pods_their_numbers_and_the_next_step() -> None:
    pods = [pod(f"p{number}", 8 * GIB, (8 + number) * GIB) for number in range(6)]
    _, finding = told(*pods)
    assert finding.reason == "HoldsMore"
    assert finding.message.startswith(
        "5 pods hold more GPU memory than charged: team/p5 holds 13Gi, 5Gi above its charge of 8Gi;"
        " team/p4 holds 12Gi, 4Gi above its charge of 8Gi;"
    )
    assert "; and 2 more. Next step: declare what they need" in finding.message


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([], ("False", "ChargesCoverUse"), id="no pod"),
        pytest.param([pod("a", 5, 5)], ("False", "ChargesCoverUse"), id="exactly its charge"),
        pytest.param([pod("a", 5, 6)], ("True", "HoldsMore"), id="a byte more"),
        pytest.param([pod("a", 0, 1)], ("True", "HoldsMore"), id="charged nothing"),
        pytest.param([pod("a", 5, 1), pod("b", 5, None)], ("Unknown", "UseUnknown"), id="silent"),
        pytest.param([pod("a", None, 6)], ("Unknown", "UseUnknown"), id="charge unknown"),
        pytest.param([pod("a", None, 0)], ("False", "ChargesCoverUse"), id="holds nothing"),
        pytest.param([pod("a", 5, None, started=False)], ("False", "ChargesCoverUse"),
                     id="not started"),
        pytest.param([pod("a", 5, 6), pod("b", 5, None)], ("True", "HoldsMore"),
                     id="one is enough, whatever else is not known"),
        pytest.param([pod("a", 100, 1), pod("b", 5, 6)], ("True", "HoldsMore"),
                     id="what others leave does not make up for it"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_few_pods(pods: list[ChargedPod], expected: tuple[str, str]) -> None:
    _, finding = told(*pods)
    assert (finding.status, finding.reason) == expected


def test_the_unknown_are_counted_and_the_first_is_named() -> None:
    _, finding = told(pod("b", 5, None), pod("a", 5, None), pod("c", 5, 1))
    assert finding.message == (
        "Of 2 of 3 pods it is not known whether they hold more than they are charged, first"
        " team/a; the others do not."
    )

"""What a webhook decides from one stored tenant; what is not known is never room."""

from __future__ import annotations

from typing import Any

import pytest

from gpumem_operator.api.quantity import GIB
from gpumem_operator.ledger.book import Reason
from gpumem_operator.ledger.reservation import MOST_RESERVATIONS
from gpumem_operator.ledger.reserve import Asking, answer, page_of

Raw = dict[str, Any]


def stored(
    *, generation: int = 1, exceeded: str = "Reject", limit: str = "10Gi", **status: Any
) -> Raw:
    quota = {"limit": limit, "wholeGPU": "80Gi", "onExceeded": exceeded}
    counted: Raw = {"epoch": 1, "observedGeneration": 1, "chargedBytes": 0}
    return {
        "metadata": {"name": "t", "generation": generation, "resourceVersion": "7"},
        "spec": {"namespaceSelector": {}, "quota": quota},
        "status": {key: value for key, value in (counted | status).items() if value is not None},
    }


def row(name: str, gib: int = 1) -> Raw:
    return {"podUID": f"uid-{name}", "namespace": "team", "name": name, "bytes": gib * GIB}


def pod(name: str = "new", gib: int = 1) -> Asking:
    return Asking(f"uid-{name}", "team", name, lambda _: gib * GIB)


def reason(raw: Raw, one: Asking | None = None) -> Reason | None:
    asked = one or pod()
    obstacle = answer(page_of(raw), [asked]).refused.get(asked.uid)
    return obstacle.reason if obstacle else None


def test_room_is_limit_less_charge_less_reservations() -> None:
    raw = stored(chargedBytes=6 * GIB, reservations=[row("a", 2)])
    assert reason(raw, pod(gib=2)) is None
    assert reason(raw, pod(gib=3)) is Reason.NO_ROOM


@pytest.mark.parametrize(
    "unknown",
    [{"chargedBytes": None}, {"epoch": None}, {"observedGeneration": None}, {"generation": 2}],
)
def test_what_nobody_has_counted_is_not_zero(unknown: Raw) -> None:
    assert reason(stored(**unknown)) is Reason.NOT_COUNTED


def test_a_tenant_that_can_not_be_read_gives_nothing() -> None:
    assert reason(stored(limit="12 bananas")) is Reason.UNREADABLE


def test_what_is_held_for_those_who_wait_is_not_given_to_those_who_do_not() -> None:
    raw = stored(exceeded="Queue", heldBytes=4 * GIB)
    assert reason(raw, pod(gib=6)) is None
    assert reason(raw, pod(gib=7)) is Reason.HELD


def test_more_than_the_whole_quota_never_fits() -> None:
    assert reason(stored(), pod(gib=11)) is Reason.NEVER_FITS


def test_the_list_of_reservations_is_bounded() -> None:
    full = [row(f"p{number}", 0) for number in range(MOST_RESERVATIONS)]
    assert reason(stored(reservations=full)) is Reason.FULL


def test_a_lowered_quota_gives_nothing_and_a_pod_that_costs_nothing_needs_nothing() -> None:
    raw = stored(chargedBytes=20 * GIB)
    assert reason(raw) is Reason.NO_ROOM
    assert reason(raw, pod(gib=0)) is None


def test_the_tenants_own_quota_says_what_a_pod_costs() -> None:
    whole = Asking("uid", "team", "whole", lambda quota: quota.whole_gpu_bytes)
    assert reason(stored(), whole) is Reason.NEVER_FITS


def test_asked_again_with_what_it_led_to_it_changes_nothing() -> None:
    page = page_of(stored(reservations=[row("a", 8)]))
    pods = [pod("b", 2), pod("c", 1), pod("a", 8)]
    first = answer(page, pods)
    assert list(first.refused) == ["uid-c"]
    raw = stored(reservations=[row("a", 8), row("b", 2)])
    again = answer(page_of(raw), pods)
    assert again == first


def test_what_is_returned_is_free_for_those_who_ask_with_it() -> None:
    page = page_of(stored(reservations=[row("gone", 10)]))
    found = answer(page, [pod("b", 10)], returned={"uid-gone"})
    assert ([one.name for one in found.reservations], found.refused) == (["b"], {})

"""The order in which waiting pods go on, and what each of the others waits for."""

from dataclasses import replace

import pytest

from core.queue.waiting_pods import LATER, account, granted, reasons, reserved, waiting
from gpumem_operator.ledger.queue import decide
from gpumem_operator.ledger.reservation import MOST_RESERVATIONS


def test_the_oldest_goes_first() -> None:
    pods = [waiting("young", 6, age=1), waiting("old", 6, age=2)]
    turn = decide([account(limit=10)], pods, now=LATER)
    assert granted(turn) == ["old"]
    assert reasons(turn) == {"young": "NoRoom"}


def test_priority_comes_before_age() -> None:
    pods = [waiting("old", 6, age=9), waiting("urgent", 6, priority=100)]
    assert granted(decide([account(limit=10)], pods, now=LATER)) == ["urgent"]


def test_of_equals_the_first_by_name_goes_on() -> None:
    pods = [waiting("b", 6), waiting("a", 6)]
    assert granted(decide([account(limit=10)], pods, now=LATER)) == ["a"]


def test_what_does_not_fit_is_passed_over() -> None:
    pods = [waiting("large", 8, age=9), waiting("small", 3, age=1)]
    turn = decide([account(limit=10, charged=5)], pods, now=LATER)
    assert granted(turn) == ["small"]
    (large,) = turn.waiting
    assert large.obstacle.room is not None
    assert (large.obstacle.asked_bytes, large.obstacle.room.left_bytes) == (8, 5)


def test_a_pod_that_was_passed_over_for_long_holds_the_room() -> None:
    pods = [waiting("large", 8, age=600), waiting("small", 3, age=1)]
    turn = decide([account(limit=10, charged=5, hold_after=600)], pods, now=LATER)
    assert granted(turn) == []
    assert reasons(turn) == {"large": "NoRoom", "small": "HeldForAnother"}
    assert turn.waiting[1].obstacle.holder == "team/large"


def test_one_that_can_never_fit_holds_nothing() -> None:
    pods = [waiting("huge", 11, age=600), waiting("small", 3, age=1)]
    turn = decide([account(limit=10, hold_after=0)], pods, now=LATER)
    assert granted(turn) == ["small"]
    assert reasons(turn) == {"huge": "LargerThanQuota"}


def test_room_is_held_from_those_behind_and_not_from_those_before() -> None:
    pods = [waiting("large", 8, age=600), waiting("urgent", 3, priority=1)]
    turn = decide([account(limit=10, charged=5, hold_after=600)], pods, now=LATER)
    assert granted(turn) == ["urgent"]


def test_room_that_a_holder_does_not_need_is_free() -> None:
    """It waits for another tenant; here it needs three of ten."""
    holder = waiting("holder", age=600, needs={"a": 3, "b": 8})
    small = waiting("small", needs={"a": 7})
    tenants = [account("a", hold_after=600), account("b", charged=5, hold_after=600)]
    turn = decide(tenants, [holder, small], now=LATER)
    assert granted(turn, "a") == ["small"]
    assert reasons(turn) == {"holder": "NoRoom"}


def test_each_tenant_says_for_itself_when_its_room_is_held() -> None:
    """A pod of two tenants waits for the one; the room of the other is nobody's for an hour yet."""
    holder = waiting("holder", age=600, needs={"a": 8, "b": 8})
    small = waiting("small", needs={"a": 5})
    tenants = [account("a", hold_after=3600), account("b", charged=8, hold_after=0)]
    turn = decide(tenants, [holder, small], now=LATER)
    assert granted(turn, "a") == ["small"]
    assert turn.held == {"a": 0, "b": 8}
    assert reasons(turn) == {"holder": "NoRoom"}


def test_pods_go_on_when_what_they_need_is_stored() -> None:
    pods = [waiting("next", 6)]
    first = decide([account()], pods, now=LATER)
    assert first.through == ()
    second = decide([account(stored=first.reservations["research"])], pods, now=LATER)
    assert second.through == tuple(pods)
    assert second.reservations == first.reservations


def test_a_pod_that_costs_more_by_now_needs_more_room_first() -> None:
    """Its tenant counts more for a whole GPU than when the room was reserved."""
    pods = [waiting("first", 4, age=2), waiting("other", 4, age=1)]
    tenant = account(limit=7, stored=(reserved("first", 1), reserved("other", 1)))
    turn = decide([tenant], pods, now=LATER)
    assert turn.through == ()
    assert turn.lacking == tuple(pods)
    assert turn.reservations["research"] == (replace(reserved("first", 4), seen=True),)


def test_a_pod_that_no_tenant_asks_to_wait_goes_on_at_once() -> None:
    pods = [waiting("free", needs={})]
    assert decide([], pods, now=LATER).through == tuple(pods)


def test_a_pod_whose_tenant_can_not_be_read_waits_and_keeps_what_it_has() -> None:
    pod = waiting("odd")
    unknown = replace(pod, needs=None)
    turn = decide([account(stored=(reserved("odd", 4),))], [unknown], now=LATER)
    assert turn.through == ()
    assert granted(turn) == ["odd"]
    assert reasons(turn) == {"odd": "TenantUnreadable"}


def test_a_pod_of_two_tenants_needs_room_in_both() -> None:
    pod = waiting("both", needs={"a": 3, "b": 3})
    tenants = [account("a"), account("b", charged=8)]
    turn = decide(tenants, [pod], now=LATER)
    assert granted(turn, "a") == granted(turn, "b") == []
    assert turn.waiting[0].obstacle.tenant == "b"


def test_a_reservation_is_given_back_where_the_other_tenant_has_no_room() -> None:
    pod = waiting("both", needs={"a": 3, "b": 3})
    tenants = [account("a", stored=(reserved("both", 3),)), account("b", charged=8)]
    assert granted(decide(tenants, [pod], now=LATER), "a") == []


def test_a_reservation_of_a_tenant_that_the_pod_left_is_given_back() -> None:
    tenants = [account("a"), account("b", stored=(reserved("moved", 3),))]
    turn = decide(tenants, [waiting("moved", needs={"a": 3})], now=LATER)
    assert (granted(turn, "a"), granted(turn, "b")) == (["moved"], [])


def test_a_reservation_becomes_a_charge_when_the_pod_is_seen_without_the_gate() -> None:
    tenant = account(charged=4, stored=(reserved("ran", 4),))
    assert granted(decide([tenant], [], opened={"uid-ran"}, now=LATER)) == []


def test_a_reservation_of_a_pod_that_is_not_seen_stays_until_it_was_looked_for() -> None:
    tenant = account(stored=(reserved("unseen", 10),))
    turn = decide([tenant], [waiting("next")], now=LATER)
    assert granted(turn) == ["unseen"]
    turn = decide([tenant], [waiting("next")], gone={"uid-unseen"}, now=LATER)
    assert granted(turn) == ["next"]


def test_of_pods_about_to_go_on_the_last_wait_again_where_the_quota_was_lowered() -> None:
    pods = [waiting(name, 4, age=age) for name, age in (("old", 3), ("young", 2), ("late", 1))]
    tenant = account(limit=6, charged=1, stored=(reserved("old", 4), reserved("young", 4)))
    turn = decide([tenant], pods, now=LATER)
    assert turn.through == (pods[0],)
    assert turn.lacking == (pods[1],)
    assert granted(turn) == ["old"]
    assert reasons(turn) == {"young": "NoRoom", "late": "NoRoom"}


def test_one_that_can_not_be_fenced_keeps_its_room_and_takes_nobody_elses() -> None:
    pods = [waiting("old", 4, age=3), waiting("young", 4, age=2)]
    tenant = account(limit=6, stored=(reserved("old", 4), reserved("young", 4)))
    turn = decide([tenant], pods, keeping={"uid-young"}, now=LATER)
    assert turn.through == (pods[0],)
    assert turn.lacking == ()
    assert granted(turn) == ["old", "young"]
    assert reasons(turn) == {"young": "NoRoom"}


def test_below_what_is_charged_nobody_goes_on_but_what_is_charged_nothing() -> None:
    tenant = account(limit=2, charged=6, stored=(reserved("early", 4), reserved("free", 0)))
    early, free = waiting("early", 4, age=2), waiting("free", 0)
    turn = decide([tenant], [early, free], now=LATER)
    assert turn.through == (free,)
    assert reasons(turn) == {"early": "LargerThanQuota"}


def test_room_kept_for_a_pod_that_comes_without_a_gate_is_not_taken_back() -> None:
    """A webhook has let it in already."""
    tenant = account(limit=2, stored=(reserved("comes", 4), reserved("early", 1)))
    turn = decide([tenant], [waiting("early", 1)], now=LATER)
    assert granted(turn) == ["comes"]


def test_what_is_charged_nothing_waits_for_nothing() -> None:
    turn = decide([account(limit=2, charged=6)], [waiting("free", 0)], now=LATER)
    assert granted(turn) == ["free"]


def test_a_full_list_lets_nobody_overtake() -> None:
    full = tuple(reserved(f"p{number}", 0) for number in range(MOST_RESERVATIONS))
    turn = decide([account(stored=full)], [waiting("next")], now=LATER)
    assert reasons(turn) == {"next": "TooManyReservations"}


@pytest.mark.parametrize("limit", [0, 3, 7, 100])
def test_a_turn_never_gives_more_than_there_is(limit: int) -> None:
    pods = [waiting(f"p{number:02}", 1 + number % 4, age=number) for number in range(30)]
    turn = decide([account(limit=limit, charged=2)], pods, now=LATER)
    given = sum(one.amount_bytes for one in turn.reservations["research"])
    assert given <= max(limit - 2, 0)

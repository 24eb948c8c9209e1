"""Places are decided on as data: shares, room, deadlines and bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpumem_operator.serving.places import Limits, NoPlace, Place, Places, Stage

LIMITS = Limits(most=6, most_of_address=4, most_bytes=1000, kept=6)


def enter(places: Places, address: str, now: float = 0.0) -> Place:
    place, loser = places.enter(address, now)
    assert loser is None
    return place


def keep(places: Places, address: str, now: float) -> Place:
    """A connection that has had an answer."""
    place = enter(places, address, now)
    places.begin(place, now)
    places.answered(place, now, unread=False)
    return place


def test_an_address_with_its_share_takes_the_next_place_from_itself() -> None:
    places = Places(LIMITS)
    mine = [enter(places, "a", float(number)) for number in range(4)]
    other = enter(places, "b", 0.0)
    _, loser = places.enter("a", 10.0)
    assert loser is mine[0]
    assert other in set(places)
    assert len(places) == 5


def test_those_who_say_nothing_go_before_those_who_are_kept() -> None:
    places = Places(LIMITS)
    kept = [keep(places, "a", 0.0), keep(places, "b", 0.0)]
    silent = [enter(places, "c", 50.0) for _ in range(4)]
    _, loser = places.enter("d", 52.0)
    assert loser is silent[0]
    assert set(kept) <= set(places)


def test_those_who_are_kept_go_before_those_who_have_just_come() -> None:
    places = Places(LIMITS)
    kept = [keep(places, "a", 1.0), keep(places, "a", 0.0)]
    for _ in range(4):
        enter(places, "c", 52.0)
    assert places.enter("d", 52.1)[1] is kept[0], "the one that has been kept for longest"
    assert places.enter("e", 52.1)[1] is kept[1]
    assert places.enter("f", 52.1)[1] is not None


def test_the_address_with_most_makes_room() -> None:
    places = Places(LIMITS)
    lonely = enter(places, "a", 0.0)
    for address in ("b", "b", "c", "c", "c"):
        enter(places, address, 1.0)
    _, loser = places.enter("d", 60.0)
    assert loser is not None
    assert loser.address == "c"
    assert lonely in set(places)


def test_no_place_is_taken_from_work() -> None:
    places = Places(LIMITS)
    for address in ("a", "a", "a", "a", "b", "b"):
        places.begin(enter(places, address), 0.0)
    for address in ("a", "c"):
        with pytest.raises(NoPlace):
            places.enter(address, 100.0)
    assert len(places) == 6


def test_each_stage_has_its_deadline() -> None:
    places = Places(LIMITS)
    place = enter(places, "a", 0.0)
    assert places.overdue(9.9) == []
    assert places.overdue(10.0) == [place]
    places.begin(place, 9.0)
    assert places.overdue(18.9) == []
    assert places.overdue(19.0) == [place]
    places.received(place)
    assert places.overdue(1e9) == []
    places.answered(place, 20.0, unread=False)
    places.stalled(place, 20.0)
    assert places.overdue(50.0) == [place]
    places.received(place)
    places.heard(place, 1, 60.0)
    assert places.overdue(69.9) == []
    assert places.overdue(70.0) == [place]


def test_trickling_bytes_do_not_move_a_deadline() -> None:
    places = Places(LIMITS)
    place = enter(places, "a", 0.0)
    for second in range(10):
        places.heard(place, 1, float(second))
    assert places.overdue(10.0) == [place]


def test_where_too_much_is_held_the_largest_of_the_address_that_holds_most_ends() -> None:
    places = Places(LIMITS)
    large = enter(places, "a")
    small = [enter(places, "b") for _ in range(3)]
    assert places.heard(large, 400, 0.0) is None
    assert [places.heard(place, 190, 0.0) for place in small] == [None] * 3
    assert places.heard(small[1], 60, 0.0) is small[1]
    places.leave(small[1])
    assert places.held_bytes == 780


def test_what_was_answered_is_held_no_longer() -> None:
    places = Places(LIMITS)
    place = enter(places, "a")
    for _ in range(5):
        assert places.heard(place, 900, 0.0) is None
        places.begin(place, 0.0)
        places.answered(place, 0.0, unread=False)
    assert places.held_bytes == 0


steps = st.lists(
    st.tuples(
        st.sampled_from(["enter", "heard", "begin", "answered", "unread", "leave", "stalled"]),
        st.integers(0, 20),
        st.integers(0, 400),
    ),
    max_size=120,
)


@given(steps, st.integers(1, 6), st.integers(1, 6))
def test_shares_and_sums_hold_whatever_happens(
    taken: list[tuple[str, int, int]], most: int, share: int
) -> None:
    places = Places(replace(LIMITS, most=most, most_of_address=share))
    known: list[Place] = []
    for now, (step, which, size) in enumerate(taken):
        if step == "enter":
            working = [place for place in places if place.stage is Stage.WORKING]
            try:
                place, loser = places.enter(f"{which % 3}", now)
            except NoPlace:
                assert working
                continue
            known.append(place)
            assert loser not in working
        elif known:
            # Also of connections that have lost their place: they end a moment later.
            act(places, step, known[which % len(known)], size, now)
        check(places, most, share)


def act(places: Places, step: str, place: Place, size: int, now: float) -> None:
    if step == "heard":
        if (heavy := places.heard(place, size, now)) is not None:
            places.leave(heavy)
    elif step == "begin":
        places.begin(place, now)
    elif step == "leave":
        places.leave(place)
    elif step == "stalled":
        places.stalled(place, now)
    else:
        places.answered(place, now, unread=step == "unread")


def check(places: Places, most: int, share: int) -> None:
    all_places = list(places)
    addresses = [place.address for place in all_places]
    assert len(places) == len(all_places) == len(set(all_places)) <= most
    assert all(addresses.count(address) <= share for address in addresses)
    assert places.held_bytes == sum(place.held_bytes for place in all_places) <= 1000

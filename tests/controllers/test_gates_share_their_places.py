"""Whatever the webhooks of some namespaces do, gates of others are opened, and work goes on."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gpumem_operator.controllers.gate_places import (
    FIRST,
    MOST,
    MOST_FAILING,
    MOST_OF_NAMESPACE,
    MOST_UNHEARD,
    Places,
)

NAMESPACES = [f"n{number}" for number in range(12)]


def begun(places: Places, waiting: dict[str, int]) -> list[str]:
    """Namespaces of all patches that may begin now; `waiting` are pods by namespace."""
    left, found = Counter(waiting), []
    while (namespace := places.next(+left)) is not None:
        left[namespace] -= 1
        places.begin(namespace)
        found.append(namespace)
    return found


def heard(places: Places, namespace: str, *, times: int = MOST_OF_NAMESPACE) -> None:
    for _ in range(times):
        places.begin(namespace)
        places.end(namespace, answered=True)


def test_a_namespace_that_has_not_answered_begins_with_a_few() -> None:
    assert begun(Places(), {"new": 100}) == ["new"] * FIRST


def test_each_answer_earns_one_place_more_up_to_the_most() -> None:
    places = Places()
    heard(places, "one", times=1)
    assert len(begun(places, {"one": 100})) == FIRST + 1
    places = Places()
    heard(places, "one", times=100)
    assert len(begun(places, {"one": 100})) == MOST_OF_NAMESPACE


def test_places_go_round() -> None:
    assert begun(Places(), {"a": 2, "b": 2, "c": 1}) == ["a", "b", "c", "a", "b"]


def test_those_that_never_answered_leave_places_to_those_that_did() -> None:
    places = Places()
    heard(places, "answers")
    silent = dict.fromkeys(NAMESPACES, 100)
    assert len(begun(places, silent)) == MOST_UNHEARD
    assert begun(places, silent | {"answers": 100}) == ["answers"] * (MOST - MOST_UNHEARD)


def test_those_that_fail_have_a_few_together_and_one_each() -> None:
    places = Places()
    for name in begun(places, dict.fromkeys(NAMESPACES, 1)):
        places.end(name, answered=False)
    found = begun(places, dict.fromkeys(NAMESPACES, 100))
    assert len(found) == len(set(found)) == MOST_FAILING
    assert begun(places, {"new": 100}) == ["new"] * FIRST


def test_those_that_fail_are_all_tried_again_in_turn() -> None:
    places = Places()
    for name in begun(places, dict.fromkeys(NAMESPACES, 1)):
        places.end(name, answered=False)
    tried = set()
    for _ in range(len(NAMESPACES) // MOST_FAILING):
        for name in begun(places, dict.fromkeys(NAMESPACES, 100)):
            tried.add(name)
            places.end(name, answered=False)
    assert tried == set(NAMESPACES)


def test_an_answer_ends_the_distrust() -> None:
    places = Places()
    places.begin("back")
    places.end("back", answered=False)
    assert begun(places, {"back": 100}) == ["back"]
    places.end("back", answered=True)
    assert len(begun(places, {"back": 100})) > 1


def test_a_namespace_that_came_anew_is_one_that_has_not_answered() -> None:
    places = Places()
    places.begin("again")
    places.end("again", answered=False)
    places.forget("again")
    assert begun(places, {"again": 100}) == ["again"] * FIRST


Answers = st.sampled_from([True, False, None])


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(NAMESPACES), st.integers(0, 40), Answers, st.integers(0, 40)),
        max_size=60,
    )
)
def test_no_bound_is_passed_and_no_place_is_left_without_need(
    steps: list[tuple[str, int, bool | None, int]],
) -> None:
    places, taken, earned, failing = Places(), Counter[str](), set[str](), set[str]()
    waiting: Counter[str] = Counter()
    for name, more, answered, ends in steps:
        waiting[name] += more
        for found in begun(places, waiting):
            waiting[found] -= 1
            taken[found] += 1
        assert taken.total() <= MOST
        assert max(taken.values(), default=0) <= MOST_OF_NAMESPACE
        free = MOST - taken.total()
        assert not free or not any(waiting[one] and not taken[one] for one in earned)
        for _ in range(min(ends, taken[name])):
            taken[name] -= 1
            places.end(name, answered=answered)
            if answered is not None:
                (earned if answered else failing).add(name)
                (failing if answered else earned).discard(name)

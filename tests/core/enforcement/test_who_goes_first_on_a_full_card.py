"""Pods over their limits stand in the way of those inside theirs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpumem_operator.enforcement.order_of_pods import Excess, full_cards, in_order
from gpumem_operator.reports.cards import Card, Parts

GIB = 2**30


def card(uuid: str, *, free: int | None) -> Card:
    if free is None:
        return Card("gpu-1", uuid, "NVIDIA H200", None, "DeviceLost")
    return Card("gpu-1", uuid, "NVIDIA H200", Parts(81, 1, 80 - free, 0, free))


def test_a_card_is_full_above_95_percent_of_what_processes_can_have() -> None:
    cards = [card("a", free=3), card("b", free=4), card("c", free=None)]
    assert full_cards(cards) == {"a"}


def test_the_largest_excess_on_a_full_card_goes_first() -> None:
    pods = [Excess("x", {"a": 5}), Excess("y", {"b": 1}), Excess("z", {"b": 2})]
    assert in_order(pods, {"b"}) == ["z", "y", "x"]


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 9), max_size=6), st.booleans())
def test_nobody_is_added_and_nobody_is_lost(excess: dict[str, int], full: bool) -> None:
    pods = [Excess(uid, {"a": amount}) for uid, amount in excess.items()]
    assert sorted(in_order(pods, {"a"} if full else set())) == sorted(excess)

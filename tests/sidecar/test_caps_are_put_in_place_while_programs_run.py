"""Several that allocate share a pool, and go on allocating while their caps are moved."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from gpumem_shim.limits import MIB
from gpumem_shim.sharing import User, share_out

POOL = 7 * 1024 * MIB
AMOUNTS = st.integers(0, 8 * 1024).map(lambda mib: mib * MIB)


@dataclass
class Allocator:
    """Takes as much as its cap lets it whenever somebody looks or changes a cap."""

    everyone: list[Allocator]
    hunger: list[int]
    held: int = 0
    cap: int | None = None

    def grow(self) -> None:
        for one in self.everyone:
            if one.hunger and one.cap is not None:
                one.held = max(one.held, min(one.cap, one.held + one.hunger.pop()))

    def look(self) -> int:
        self.grow()
        return self.held

    def put(self, cap: int) -> None:
        self.grow()
        self.cap = cap


HUNGERS = st.lists(st.lists(AMOUNTS, max_size=20), min_size=1, max_size=4)


def users_of(allocators: list[Allocator]) -> list[User]:
    return [
        User(str(n), held=one.look, put=one.put, cap_bytes=one.cap)
        for n, one in enumerate(allocators)
    ]


@given(HUNGERS, st.integers(1, 4))
def test_they_never_hold_more_than_the_pool_and_a_byte_each(
    hungers: list[list[int]], rounds: int
) -> None:
    allocators: list[Allocator] = []
    for hunger in hungers:
        # Each comes to those that are there already.
        allocators.append(Allocator(allocators, hunger))
        for _ in range(rounds):
            share_out(POOL, users_of(allocators))
            assert sum(one.held for one in allocators) <= POOL + len(allocators)
            assert sum(one.cap or 0 for one in allocators) <= POOL + len(allocators)


def test_the_one_that_is_raised_gets_what_the_lowered_one_did_not_take_meanwhile() -> None:
    held, caps = {"first": 1024 * MIB}, {"first": POOL}

    def put_first(cap: int) -> None:
        held["first"] = 6 * 1024 * MIB
        caps["first"] = cap

    first = User("first", lambda: held["first"], put_first, cap_bytes=POOL)
    second = User("second", lambda: 0, lambda cap: caps.update(second=cap))
    share_out(POOL, [second, first])
    assert caps == {"first": 4 * 1024 * MIB - MIB, "second": 1024 * MIB}

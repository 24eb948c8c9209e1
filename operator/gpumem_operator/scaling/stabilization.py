"""Stabilization windows: the lowest recommendation of late counts when growing, the highest when
shrinking.

A recommendation is taken to hold until the next one is made, so that a gap between two decisions
never makes a window shorter. Only those that may still count are kept.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace

from gpumem_operator.scaling.memory import MOST_PASTS, Memory, Past


def remember(
    memory: Memory, recommended: int, *, replicas: int, now: int, up_seconds: int, down_seconds: int
) -> Memory:
    """The memory after one more recommendation. The first one follows what is there."""
    before = Past(now, replicas if memory.latest is None else memory.latest)
    return replace(
        memory,
        latest=recommended,
        highest=_kept(
            (*memory.highest, before), recommended, since=now - down_seconds, beats=operator.gt
        ),
        lowest=_kept(
            (*memory.lowest, before), recommended, since=now - up_seconds, beats=operator.lt
        ),
    )


def stabilized(memory: Memory, replicas: int) -> int:
    """The number nearest to `replicas` that all remembered recommendations allow."""
    latest = replicas if memory.latest is None else memory.latest
    lowest = min([latest, *(past.replicas for past in memory.lowest)])
    highest = max([latest, *(past.replicas for past in memory.highest)])
    return min(max(replicas, lowest), highest)


def _kept(
    pasts: Sequence[Past], recommended: int, *, since: int, beats: Callable[[int, int], bool]
) -> tuple[Past, ...]:
    """Those of the window that are more extreme than everything after them."""
    kept: list[Past] = []
    extreme = recommended
    for past in reversed(pasts):
        if past.until > since and beats(past.replicas, extreme):
            kept.insert(0, past)
            extreme = past.replicas
    while len(kept) > MOST_PASTS:
        # The oldest is the most careful one: it counts as long as the second would have.
        kept[:2] = [Past(kept[1].until, kept[0].replicas)]
    return tuple(kept)

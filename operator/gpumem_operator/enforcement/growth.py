"""Use that only grows: how fast, and how long until the limit.

What a program holds goes up and down with its work; what leaks shows in the least that it holds.
So the least of each five minutes is kept, and a pod grows where each of the last six is above the
one before.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.enforcement.facts import Hold

SLOT_SECONDS: Final = 300.0
SLOTS: Final = 6
_LEAST_PERCENT: Final = 1
"""Of the limit, over all slots: less is the noise of measurement."""


class Place(NamedTuple):
    """One container of a pod on one GPU."""

    uid: str
    container: str
    gpu: str


@dataclass(frozen=True, slots=True)
class Growth:
    """How use grows at one place."""

    bytes_per_second: float
    seconds_to_limit: float
    """0 where it is above the limit already."""

    @property
    def sentence(self) -> str:
        """For people."""
        minutes = int(SLOTS * SLOT_SECONDS // 60)
        hourly = show_bytes(int(self.bytes_per_second * 3600))
        left = int(self.seconds_to_limit // 60)
        return (
            f"What it holds at least has only grown for {minutes} minutes, by {hourly} an hour: its"
            f" limit is reached in {left // 60} h {left % 60} min. Next step: look for what the"
            " program keeps from step to step (tensors with their graph, lists of results, caches)"
        )


@dataclass(slots=True)
class _Track:
    """The least of each slot, by the slot's number; the last one is still open."""

    least: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=SLOTS + 1))

    def goes_on(self, slot: int) -> bool:
        """Whether it was measured so lately that it would not begin anew."""
        return self.least[-1][0] >= slot - 1

    def take(self, slot: int, amount: int) -> None:
        if self.least and self.least[-1][0] == slot:
            self.least[-1] = slot, min(self.least[-1][1], amount)
        else:
            self.least.append((slot, amount))


class Growths:
    """Remembers an hour at most; a new leader begins anew."""

    def __init__(self) -> None:
        self._tracks: dict[Place, _Track] = {}

    def __len__(self) -> int:
        """Places that are remembered."""
        return len(self._tracks)

    def look(self, holds: Iterable[tuple[str, Hold]], now: float) -> dict[Place, Growth]:
        """Places that grow, from the holds of all pods by uid; `now` in seconds of any clock.

        Places that are not measured for so long that they begin anew are forgotten.
        """
        slot = int(now // SLOT_SECONDS)
        self._tracks = {place: one for place, one in self._tracks.items() if one.goes_on(slot)}
        found: dict[Place, Growth] = {}
        for uid, hold in holds:
            if hold.used.bytes is None:
                continue
            place = Place(uid, hold.container, hold.gpu)
            track = self._tracks.setdefault(place, _Track())
            track.take(slot, hold.used.bytes)
            if (growth := _growth(track, hold, hold.used.bytes)) is not None:
                found[place] = growth
        return found


def _growth(track: _Track, hold: Hold, used: int) -> Growth | None:
    closed = [amount for _, amount in track.least][:-1]
    if len(closed) < SLOTS or not all(a < b for a, b in pairwise(closed)):
        return None
    risen = closed[-1] - closed[0]
    if used < closed[-1] or risen * 100 < hold.limit_bytes * _LEAST_PERCENT:
        return None
    rate = risen / ((SLOTS - 1) * SLOT_SECONDS)
    return Growth(rate, max(0.0, (hold.limit_bytes - used) / rate))

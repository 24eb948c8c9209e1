"""The places of a listener, as data: who holds one, until when, and who loses his for another.

    enter -> Arriving --begin--> Working --answered--> Kept --heard--> Arriving ...

Arriving covers the TLS handshake and the head of a request. A place at work is never taken away for
another connection. Of the others, those go first that have kept everybody waiting for more than a
second, then those that are kept for a next request, the longest silent of each first, and from the
address that holds most. So an address never has more than its share, and somebody who comes to a
full listener finds a place unless all are at work.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import Final

STUCK_SECONDS: Final = 1.0
"""An honest handshake and head need some milliseconds, or a few round trips of a bad network."""


class NoPlace(Exception):
    """Every place that could be asked for is at work."""


class Stage(Enum):
    """What a connection is doing."""

    ARRIVING = "Arriving"
    WORKING = "Working"
    KEPT = "Kept"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a listener allows. Seconds count from when the stage began."""

    most: int
    """Connections."""
    most_of_address: int
    """Connections of one address; all pods of a node may share one (masquerading)."""
    most_bytes: int
    """Held by all requests that are not answered yet."""
    kept: int
    """Connections above which one is closed after its answer."""
    head_seconds: float = 10.0
    """For the handshake and the first head together, and for each later head."""
    body_seconds: float = 10.0
    answer_seconds: float = 30.0
    """For a client to take an answer that does not fit into the buffers between."""


@dataclass(eq=False, slots=True)
class Place:
    """Changed by `Places` alone."""

    address: str
    since: float
    deadline: float
    stage: Stage = Stage.ARRIVING
    held_bytes: int = 0
    unread: bool = False
    """Whether the body of the answered request is still on its way; nothing of it is held."""


@dataclass(eq=False, slots=True)
class _Holder:
    """The places of one address."""

    by_stage: dict[Stage, OrderedDict[Place, None]] = field(
        default_factory=lambda: {stage: OrderedDict() for stage in Stage}
    )
    """Longest in its stage first."""
    held_bytes: int = 0

    def __len__(self) -> int:
        return sum(map(len, self.by_stage.values()))

    def __iter__(self) -> Iterator[Place]:
        for places in self.by_stage.values():
            yield from places

    def longest(self, stage: Stage) -> Place | None:
        return next(iter(self.by_stage[stage]), None)


class Places:
    """All places of one listener. Times are seconds of one clock of the caller."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.held_bytes = 0
        self._holders: dict[str, _Holder] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Place]:
        for holder in self._holders.values():
            yield from holder

    def enter(self, address: str, now: float) -> tuple[Place, Place | None]:
        """A place for a new connection, and the one that lost its own for it. Raises NoPlace."""
        loser = self._make_room(address, now)
        place = Place(address, now, now + self.limits.head_seconds)
        holder = self._holders.setdefault(address, _Holder())
        holder.by_stage[place.stage][place] = None
        self._count += 1
        return place, loser

    def heard(self, place: Place, size: int, now: float) -> Place | None:
        """Bytes came from the client. Returns the place to end where too much is held now."""
        if place.unread:
            return None
        if place.stage is Stage.KEPT:
            self._move(place, Stage.ARRIVING, now, deadline=now + self.limits.head_seconds)
        self._hold(place, size)
        return self._heaviest() if self.held_bytes > self.limits.most_bytes else None

    def begin(self, place: Place, now: float) -> None:
        """The head of a request is there, and it is being worked on."""
        place.unread = False
        self._move(place, Stage.WORKING, now, deadline=now + self.limits.body_seconds)

    def received(self, place: Place) -> None:
        """The body is there too, or the client has taken what was waiting for it."""
        place.deadline = inf

    def stalled(self, place: Place, now: float) -> None:
        """The client does not take its answer."""
        place.deadline = now + self.limits.answer_seconds

    def answered(self, place: Place, now: float, *, unread: bool) -> None:
        """The request is done with; `unread`: its body is not here and nobody wants it."""
        self._hold(place, -place.held_bytes)
        place.unread = unread
        self._move(place, Stage.KEPT, now, deadline=inf)

    def leave(self, place: Place) -> None:
        """The connection has ended; to say so twice does no harm."""
        holder = self._holders.get(place.address)
        if holder is None or place not in holder.by_stage[place.stage]:
            return
        self._hold(place, -place.held_bytes)
        del holder.by_stage[place.stage][place]
        self._count -= 1
        if not len(holder):
            del self._holders[place.address]

    def overdue(self, now: float) -> list[Place]:
        """Places whose deadline has passed."""
        return [place for place in self if place.deadline <= now]

    def largest_holder(self) -> tuple[str, int]:
        """The address with most places, and how many; an empty one where nobody is here."""
        counts = ((address, len(holder)) for address, holder in self._holders.items())
        return max(counts, key=lambda pair: pair[1], default=("", 0))

    def _make_room(self, address: str, now: float) -> Place | None:
        own = self._holders.get(address)
        if own is not None and len(own) >= self.limits.most_of_address:
            loser = _weakest((own,), now)
        elif self._count >= self.limits.most:
            loser = _weakest(sorted(self._holders.values(), key=len, reverse=True), now)
        else:
            return None
        if loser is None:
            raise NoPlace
        self.leave(loser)
        return loser

    def _move(self, place: Place, stage: Stage, now: float, *, deadline: float) -> None:
        holder = self._holders.get(place.address)
        if holder is None or holder.by_stage[place.stage].pop(place, place) is place:
            return  # it has left already
        place.stage, place.since, place.deadline = stage, now, deadline
        holder.by_stage[stage][place] = None

    def _hold(self, place: Place, size: int) -> None:
        holder = self._holders.get(place.address)
        if holder is None or place not in holder.by_stage[place.stage]:
            return
        place.held_bytes += size
        holder.held_bytes += size
        self.held_bytes += size

    def _heaviest(self) -> Place:
        """The largest request of the address whose requests are largest together."""
        holder = max(self._holders.values(), key=lambda holder: holder.held_bytes)
        return max(holder, key=lambda place: place.held_bytes)


def _weakest(holders: Iterable[_Holder], now: float) -> Place | None:
    """Who has to go, of addresses with most places first; None where all are at work."""
    holders = tuple(holders)
    arriving = [place for each in holders if (place := each.longest(Stage.ARRIVING))]
    stuck = (place for place in arriving if now - place.since > STUCK_SECONDS)
    kept = (place for each in holders if (place := each.longest(Stage.KEPT)))
    return next(stuck, None) or next(kept, None) or next(iter(arriving), None)

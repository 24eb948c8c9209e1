"""Which report is to be sent when. Pure: the clock is an argument.

A picture is sent in full when it differs from what the leader has, and 30 s after the last report
in any case, as one line where nothing changed. Every report says how old its picture is: where no
new one is taken any more, the leader sees it. While a container is over its limit, an order is open
or the leader asks for it, every picture is sent. After anything that went wrong the leader's
picture is not known, and the next report is a full one.

What is too large for one report is left out and marked, and 30 s later the whole is tried again.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpumem_sidecar.answer import Answer, is_over
from gpumem_sidecar.attribution import Sender
from gpumem_sidecar.picture import Picture
from gpumem_sidecar.report import (
    WHOLE,
    Acknowledgement,
    Header,
    differs,
    encode,
    full,
    less,
    unchanged,
)

HEARTBEAT_SECONDS = 30.0
RENEWAL_SECONDS = 45.0
"""So old the leader's picture may become while there is a newer one, if only of the same; the
leader takes one of more than 90 s for unknown."""
URGENT_SECONDS = 0.5
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
REFUSED_SECONDS = 60.0
"""After a refusal that only somebody else can end."""
LONGEST_ACKNOWLEDGED = 256


class Outbox:
    """Knows what the leader knows. Times are seconds on any steady clock."""

    def __init__(self, sender: Sender, sender_start: str) -> None:
        self._sender: Sender = sender
        self._sender_start = sender_start
        self._sequence = 0
        self._picture: Picture | None = None
        self._sampled = 0.0
        """When it was taken."""
        self._sent: Picture | None = None
        """What is under way."""
        self._sent_sampled = 0.0
        self._known: Picture | None = None
        """What the leader has; None where that is not certain."""
        self._known_sampled = 0.0
        self._room = WHOLE
        """What the leader has of a picture, or is to get of it."""
        self._whole_at = 0.0
        """When the whole is tried again, where there is no room for it."""
        self._answer = Answer()
        self._due: list[Acknowledgement] = []
        self._acknowledging: list[Acknowledgement] = []
        self._last_report = -HEARTBEAT_SECONDS
        self._not_before = 0.0
        self._failures = 0

    @property
    def urgent(self) -> bool:
        """Whether the leader waits for numbers: then every 500 ms.

        Also as long as it takes a container for one over its limit that is not any more: that may
        be by less than 1 %, and on what the leader knows a pod is evicted.
        """
        if self._answer.urgent or self._answer.orders:
            return True
        pictures = (self._picture, self._known)
        return any(one and is_over(one, self._answer.limits) for one in pictures)

    def take(self, picture: Picture, sampled: float) -> None:
        """The newest picture, and when it was begun."""
        self._picture, self._sampled = picture, sampled

    def due_at(self) -> float | None:
        """When the next report is due, if no other picture comes; None before the first one."""
        if self._picture is None:
            return None
        if self._is_news(self._picture):
            return self._not_before
        due = self._last_report + HEARTBEAT_SECONDS
        if self._sampled > self._known_sampled:
            due = min(due, self._known_sampled + RENEWAL_SECONDS)
        if self._room != WHOLE:
            due = min(due, self._whole_at)
        return max(self._not_before, due)

    def next_message(self, now: float) -> bytes | None:
        """The report to send now, or None. Every message has a number of its own, also where the
        same is said again: nobody knows whether the last one arrived."""
        due = self.due_at()
        if self._picture is None or due is None or now < due:
            return None
        self._sequence += 1
        age = max(0, round((now - self._sampled) * 1000))
        header = Header(self._sender, self._sender_start, self._sequence, age)
        self._acknowledging = self._due[:LONGEST_ACKNOWLEDGED]
        self._sent, self._sent_sampled = self._picture, self._sampled
        if self._picture == self._known and self._room == WHOLE:
            return encode(unchanged(header, self._picture, self._acknowledging))
        if now >= self._whole_at:
            self._room = WHOLE
        return encode(full(header, self._picture, self._acknowledging, room=self._room))

    def accepted(
        self, answer: Answer, now: float, acknowledgements: Iterable[Acknowledgement] = ()
    ) -> None:
        """The leader took the report; `acknowledgements` are of orders in its answer. Those that
        have none yet come again with the next answer."""
        self._known, self._known_sampled = (None if answer.full else self._sent), self._sent_sampled
        self._due = self._due[len(self._acknowledging) :]
        self._answer = answer
        self._due += acknowledgements
        self._last_report, self._failures = now, 0
        # A leader that asks again and again is not answered faster than an urgent one.
        self._not_before = now + URGENT_SECONDS if answer.full or self._due else now

    def failed(self, now: float, jitter: float, *, pause: float | None = None) -> None:
        """It is not known whether anybody took the report. `jitter` is from 0 to 1; `pause` is
        what the other side asked for."""
        self._known = None
        self._failures += 1
        longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(self._failures - 1, 10))
        self._not_before = now + (pause or longest / 2) + jitter * longest / 2

    def too_large(self, now: float) -> None:
        """The report was refused for its size: at once with less in it, and where that is not
        possible, later."""
        self._known = None
        if self._room == WHOLE:
            self._whole_at = now + HEARTBEAT_SECONDS
        smaller = less(self._room, self._sent) if self._sent is not None else None
        self._room = smaller or WHOLE
        self._not_before = now + (0 if smaller else REFUSED_SECONDS)

    def out_of_order(self, sender_start: str, now: float, jitter: float) -> None:
        """The leader has something newer of this sender than the report: begin anew."""
        self._sender_start, self._sequence = sender_start, 0
        self.failed(now, jitter)

    def refused(self, now: float) -> None:
        """Somebody else has to do something first."""
        self._known = None
        self._not_before = now + REFUSED_SECONDS

    def _is_news(self, picture: Picture) -> bool:
        if self._known is None or self._due:
            return True
        return differs(self._known, picture) or (picture is not self._sent and self.urgent)

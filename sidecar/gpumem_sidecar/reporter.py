"""Sends pictures to the leader, from a thread of its own: a slow answer must not slow the sampler.

It holds one picture, the newest. Times between attempts and what is in a report are the outbox's.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Collection
from http.client import HTTPException
from typing import Protocol

from gpumem_sidecar.answer import Answer, Order, parse
from gpumem_sidecar.channel import Reply
from gpumem_sidecar.outbox import Outbox
from gpumem_sidecar.picture import Picture
from gpumem_sidecar.report import Acknowledgement

LONGEST_RETRY_AFTER_SECONDS = 300.0


class Channelled(Protocol):
    """Where reports go."""

    def post(self, body: bytes) -> Reply:
        """Raises OSError or HTTPException."""

    def close(self) -> None: ...


def new_start() -> str:
    """Different for each start of a sender."""
    return os.urandom(16).hex()


class Reporter:
    """Give it pictures with `take`; `set_urgent` hears whether they are wanted every 500 ms."""

    def __init__(
        self,
        outbox: Outbox,
        channel: Channelled,
        say: Callable[[str], None],
        set_urgent: Callable[[bool], None] = lambda _: None,
        *,
        carry_out: Callable[[Collection[Order]], list[Acknowledgement]] = lambda _: [],
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._outbox = outbox
        self._channel = channel
        self._say = say
        self._set_urgent = set_urgent
        self._carry_out = carry_out
        self._clock = clock
        self._jitter = jitter
        self._changed = threading.Condition()
        self._ended = False

    def take(self, picture: Picture, sampled: float) -> None:
        """`sampled`: when it was begun, on the clock of this reporter."""
        with self._changed:
            self._outbox.take(picture, sampled)
            self._set_urgent(self._outbox.urgent)
            self._changed.notify()

    def end(self) -> None:
        """Nothing is sent any more. What is under way is not waited for."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    def run(self) -> None:
        """Send until `end`."""
        while (message := self._next_message()) is not None:
            self._send(message)
        self._channel.close()

    def _next_message(self) -> bytes | None:
        """Waits until one is due; None at the end."""
        with self._changed:
            while not self._ended:
                now = self._clock()
                message = self._outbox.next_message(now)
                if message is not None:
                    return message
                due = self._outbox.due_at()
                self._changed.wait(None if due is None else max(0.0, due - now))
            return None

    def _send(self, message: bytes) -> None:
        # Whatever is raised, this thread goes on: nobody looks whether it is there.
        try:
            reply = self._channel.post(message)
        except Exception as error:
            # Only words that are known to hold no token.
            known = isinstance(error, (OSError, HTTPException))
            detail = f": {error}" if known else ""
            self._failed(f"no report arrives: {type(error).__name__}{detail}")
            return
        try:
            answer = self._answer(reply) if 200 <= reply.status < 300 else None
            # Files are written meanwhile: the sampler must not wait for them.
            done = self._carry_out(answer.orders) if answer else []
        except Exception as error:
            self._failed(f"the answer to a report can not be followed: {type(error).__name__}")
            return
        with self._changed:
            if answer is not None:
                self._outbox.accepted(answer, self._clock(), done)
            else:
                self._heed(reply)
            self._set_urgent(self._outbox.urgent)

    def _failed(self, why: str) -> None:
        self._say(why)
        with self._changed:
            self._outbox.failed(self._clock(), self._jitter())

    def _answer(self, reply: Reply) -> Answer | None:
        try:
            answer = parse(reply.body)
        except ValueError as error:
            self._say(f"the answer to a report can not be read: {error}")
            return None
        self._say("reports arrive")
        return answer

    def _heed(self, reply: Reply) -> None:
        """Whatever was no answer."""
        now = self._clock()
        if 200 <= reply.status < 300:
            self._outbox.failed(now, self._jitter())
            return
        self._say(f"a report was refused with status {reply.status}: {_words(reply.body)}")
        if reply.status == 413:
            self._outbox.too_large(now)
        elif reply.status == 409:
            self._outbox.out_of_order(new_start(), now, self._jitter())
        elif reply.status in (400, 403, 404, 422):
            self._outbox.refused(now)
        else:
            pause = min(reply.retry_after_seconds or 0.0, LONGEST_RETRY_AFTER_SECONDS)
            self._outbox.failed(now, self._jitter(), pause=pause or None)


def _words(body: bytes) -> str:
    """The reason that came with a refusal, for a log."""
    text = body[:200].decode("utf-8", "replace")
    return "".join(c if c.isprintable() else " " for c in text).strip() or "no reason given"

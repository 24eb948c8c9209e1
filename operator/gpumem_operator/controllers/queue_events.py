"""Events on waiting pods: the scheduler says nothing about a pod that carries a gate.

A pod that waits for seconds only is not told of. What has not changed is told again after a while,
because events are forgotten.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from typing import Final

from gpumem_operator.controllers.about import about_pod
from gpumem_operator.controllers.alarms import Alarms
from gpumem_operator.controllers.pauses import Pauses
from gpumem_operator.controllers.queue_picture import Picture
from gpumem_operator.controllers.worker import attempt
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.ledger.book import Reason
from gpumem_operator.ledger.charged_pod import largest_first
from gpumem_operator.ledger.groups import WaitingPod
from gpumem_operator.ledger.queue import Turn
from gpumem_operator.ledger.queue_status import (
    explain_place,
    explain_unreadable,
    places,
)

_PERIOD: Final = 2.0
"""Seconds between two rounds, and the least that a pod has waited when it is told of."""
_MOST_AT_ONCE: Final = 100
"""Events in one round."""


class QueueEvents:
    """Tells about the latest turn, at its own pace."""

    def __init__(
        self,
        writer: Writer,
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._alarms = Alarms(writer, now)
        self._now = now
        self._latest: tuple[Picture, Turn] | None = None
        # The next round comes by itself.
        self._pauses = Pauses(_PERIOD, again=lambda: None, monotonic=monotonic)
        """By uid of pods whose Events could not be stored."""
        self._failing: set[str] = set()
        """Namespaces where one could not be, in this round: the others wait for the next."""

    def tell(self, picture: Picture, turn: Turn) -> None:
        """From now on this is what is told."""
        self._latest = picture, turn

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_PERIOD)
            await self.round()

    async def round(self) -> None:
        """Post what is due, the first in the queues first."""
        if self._latest is None:
            return
        picture, turn = self._latest
        self._failing.clear()
        self._pauses.keep(pod.uid for pod in picture.waiting)
        for pod, reason, message in islice(self._due(picture, turn), _MOST_AT_ONCE):
            with attempt("queue", f"event on pod {pod.title}") as outcome:
                await self._alarms.tell(about_pod(pod), kind=reason.value, message=message)
            if outcome.failed:
                self._failing.add(pod.namespace)
                self._pauses.begin(pod.uid)

    def _due(self, picture: Picture, turn: Turn) -> Iterator[tuple[WaitingPod, Reason, str]]:
        for account in picture.accounts:
            holders = largest_first(picture.charged[account.name])
            for place in places(turn, account.name):
                obstacle = place.waiting.obstacle
                # Of several tenants, the one that it waits for explains it.
                if obstacle.tenant in ("", account.name) and self._is_due(
                    place.pod, obstacle.reason
                ):
                    message = explain_place(place, account.name, holders)
                    yield place.pod, obstacle.reason, message
        for one in turn.waiting:
            for pod in one.entry.pods:
                if pod.needs is None and self._is_due(pod, Reason.UNREADABLE):
                    yield pod, Reason.UNREADABLE, explain_unreadable(pod)

    def _is_due(self, pod: WaitingPod, reason: Reason) -> bool:
        if pod.namespace in self._failing or not self._pauses.is_over(pod.uid):
            return False
        waited = self._now().timestamp() - pod.created
        return waited >= _PERIOD and not self._alarms.told_lately(pod.uid, reason.value)

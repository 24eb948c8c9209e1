"""Whether the sampling loop turns and gets answers."""

from __future__ import annotations

import time
from collections.abc import Callable

HUNG_INTERVALS = 12
SHORTEST_PATIENCE_SECONDS = 30.0


class Pulse:
    """`beat` after every sample that was answered; `is_alive` while the last one is recent."""

    def __init__(
        self, interval_seconds: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._patience = max(SHORTEST_PATIENCE_SECONDS, HUNG_INTERVALS * interval_seconds)
        self._clock = clock
        self._last = clock()
        self._is_outdated = False

    def beat(self) -> None:
        self._last = self._clock()

    def outdated(self) -> None:
        """Only a new start of the container can help: the driver was replaced under it."""
        self._is_outdated = True

    def is_alive(self) -> bool:
        return not self._is_outdated and self._clock() - self._last <= self._patience

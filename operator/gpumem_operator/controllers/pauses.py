"""How long to let alone what failed: twice as long each time, up to half a minute."""

import time
from collections.abc import Callable, Iterable
from typing import Final

LONGEST_SECONDS: Final = 30.0


class Pauses:
    """By name of what failed."""

    def __init__(
        self, first_seconds: float, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._first = first_seconds
        self._monotonic = monotonic
        self._until: dict[str, float] = {}
        self._lengths: dict[str, float] = {}

    def begin(self, name: str) -> float:
        """It failed once more; the length of its pause in seconds."""
        length = min(2 * self._lengths.get(name, self._first / 2), LONGEST_SECONDS)
        self._lengths[name] = length
        self._until[name] = self._monotonic() + length
        return length

    def is_over(self, name: str) -> bool:
        return self._monotonic() >= self._until.get(name, 0.0)

    def keep(self, names: Iterable[str]) -> None:
        """Forget all others."""
        kept = set(names)
        for known in (self._until, self._lengths):
            for name in known.keys() - kept:
                del known[name]

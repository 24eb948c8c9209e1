"""When to try again what failed: after twice as long each time, up to half a minute."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final

LONGEST_SECONDS: Final = 30.0


class Pauses:
    """By name of what failed."""

    def __init__(
        self,
        first_seconds: float,
        *,
        again: Callable[[], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`again` is called when a pause is over."""
        self._first = first_seconds
        self._again = again
        self._monotonic = monotonic
        self._until: dict[str, float] = {}
        self._lengths: dict[str, float] = {}

    def begin(self, name: str) -> float:
        """It failed once more; the length of its pause in seconds."""
        length = min(2 * self._lengths.get(name, self._first / 2), LONGEST_SECONDS)
        self._lengths[name] = length
        self._until[name] = self._monotonic() + length
        asyncio.get_running_loop().call_later(length, self._again)
        return length

    def skip(self) -> None:
        """Somebody else was faster: it can be tried again without any."""
        asyncio.get_running_loop().call_soon(self._again)

    def is_over(self, name: str) -> bool:
        return self._monotonic() >= self._until.get(name, 0.0)

    def keep(self, names: Iterable[str]) -> None:
        """Forget all others."""
        kept = set(names)
        for known in (self._until, self._lengths):
            for name in known.keys() - kept:
                del known[name]

"""How often someone may come: a bucket of tokens for each, and no more buckets than are needed."""

from collections.abc import Callable, Hashable
from typing import Final

MOST_BUCKETS: Final = 20_000


class Rates:
    """`per_second` on average, and `burst` at once, for each key."""

    def __init__(self, *, per_second: float, burst: float, monotonic: Callable[[], float]) -> None:
        self._per_second = per_second
        self._burst = burst
        self._monotonic = monotonic
        self._buckets: dict[Hashable, tuple[float, float]] = {}
        """What is left, and when that was so; in the order of last use."""

    def allow(self, key: Hashable, cost: float = 1) -> bool:
        """Take one, or as many as it costs, if so much is left."""
        left = self._left(key)
        self._buckets.pop(key, None)
        if len(self._buckets) >= MOST_BUCKETS:
            # Who did not come for longest has a full bucket again, or soon.
            del self._buckets[next(iter(self._buckets))]
        self._buckets[key] = (left - cost if left >= cost else left, self._monotonic())
        return left >= cost

    def spent(self, key: Hashable) -> bool:
        """Whether nothing is left; takes nothing."""
        return self._left(key) < 1

    def _left(self, key: Hashable) -> float:
        left, since = self._buckets.get(key, (self._burst, 0.0))
        return min(self._burst, left + (self._monotonic() - since) * self._per_second)

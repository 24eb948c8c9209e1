"""Which namespace's pod is next, of those whose gates may be opened: pure, no clock, no requests.

Whatever somebody's webhooks do, other requests of the leader go on, so there are fewer places than
connections. A namespace begins with a few of them and gets one more with each answer. Those that
have not answered yet leave half of the places to those that have; one whose last answer was none
has one place, and all of these have a few together. Who was served longest ago is next.
"""

from collections import Counter
from collections.abc import Collection
from typing import Final

MOST: Final = 32
"""Patches on their way: a third of the connections that the leader has for everything."""
MOST_OF_NAMESPACE: Final = 16
FIRST: Final = 4
"""Of a namespace that has not answered yet."""
MOST_UNHEARD: Final = 16
"""Of all namespaces together that have not answered, the failing ones among them."""
MOST_FAILING: Final = 4
"""Of all namespaces together whose last answer was none, or a refusal."""


class Places:
    """Mutable: it is told what begins and how that ends."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()
        """By namespace, patches on their way."""
        self._earned: dict[str, int] = {}
        """By namespace, how many places it may take; of those that answer."""
        self._failing: set[str] = set()
        self._served: dict[str, int] = {}
        """By namespace, the number of the last patch that it began."""
        self._begun = 0

    def next(self, waiting: Collection[str]) -> str | None:
        """The namespace whose turn it is; None where none of them may have a place now."""
        taken = self._taken
        if taken.total() >= MOST:
            return None
        unheard = sum(number for name, number in taken.items() if name not in self._earned)
        failing = sum(taken[name] for name in self._failing)
        able = [
            name
            for name in waiting
            if taken[name] < self._most(name)
            and (name in self._earned or unheard < MOST_UNHEARD)
            and (name not in self._failing or failing < MOST_FAILING)
        ]
        return min(able, key=lambda name: (self._served.get(name, 0), name), default=None)

    def begin(self, namespace: str) -> None:
        """One more patch of this namespace is on its way."""
        self._begun += 1
        self._served[namespace] = self._begun
        self._taken[namespace] += 1

    def end(self, namespace: str, *, answered: bool | None) -> None:
        """`answered`: whether it went through; None where that says nothing about the namespace."""
        self._taken[namespace] -= 1
        if not self._taken[namespace]:
            del self._taken[namespace]
        if answered:
            self._earned[namespace] = min(self._most(namespace) + 1, MOST_OF_NAMESPACE)
            self._failing.discard(namespace)
        elif answered is not None:
            self._failing.add(namespace)
            self._earned.pop(namespace, None)

    def forget(self, namespace: str) -> None:
        """It is gone; one of its name has to show for itself."""
        self._failing.discard(namespace)
        self._earned.pop(namespace, None)
        self._served.pop(namespace, None)

    def _most(self, namespace: str) -> int:
        return 1 if namespace in self._failing else self._earned.get(namespace, FIRST)

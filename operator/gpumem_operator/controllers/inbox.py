"""Things to look at, each once however often it was named."""

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """A set that one worker empties and waits for."""

    def __init__(self) -> None:
        self._items: set[T] = set()
        self._filled = asyncio.Event()

    def add(self, *items: T) -> None:
        if items:
            self._items.update(items)
            self._filled.set()

    def __len__(self) -> int:
        return len(self._items)

    async def take(self, *, settle: float = 0.0) -> set[T]:
        """Wait until there is something, and `settle` seconds more; then all that is there."""
        await self._filled.wait()
        if settle:
            await asyncio.sleep(settle)
        items, self._items = self._items, set()
        self._filled.clear()
        return items

"""Many callers, few reads, and none gets an answer that is older than its question."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class SharedRead(Generic[Result]):
    """At most one read runs and one waits for it to end.

    A caller that comes while a read runs can not use it: the server may have answered before the
    caller asked. It shares the next one with all others that came meanwhile.
    """

    def __init__(
        self, read: Callable[[], Awaitable[Result]], *, on_idle: Callable[[], object]
    ) -> None:
        self._read = read
        self._on_idle = on_idle
        self._running: asyncio.Task[Result] | None = None
        self._next: asyncio.Task[Result] | None = None

    async def result(self) -> Result:
        """Raises what the read raises."""
        if self._next is None:
            self._next = asyncio.create_task(self._run_after(self._running))
            self._next.add_done_callback(self._end)
        # A caller that gives up must not take the read away from the others.
        return await asyncio.shield(self._next)

    async def _run_after(self, previous: asyncio.Task[Result] | None) -> Result:
        if previous is not None:
            await asyncio.wait([previous])
        self._running, self._next = self._next, None
        return await self._read()

    def _end(self, task: asyncio.Task[Result]) -> None:
        if not task.cancelled():
            task.exception()  # all callers may have given up, and that is no news then
        if self._next is None:
            self._on_idle()

"""Warning events when a condition turns bad: for each object one, and not again for a while."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from gpumem_operator.api.transitions import condition
from gpumem_operator.controllers.worker import timestamp
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.reports.store import SILENT_AFTER_SECONDS

PAUSE: Final = timedelta(minutes=10)
"""A condition that comes and goes is told of once in so long; the condition itself stays right."""
MOST_REMEMBERED: Final = 10_000


class Alarms:
    """Of one leader. The next one begins without a memory, and may tell once more."""

    def __init__(self, writer: Writer, now: Callable[[], datetime]) -> None:
        self._writer = writer
        self._now = now
        self._began = now()
        self._told: dict[tuple[str, str], datetime] = {}
        """By uid and condition, the latest last."""

    async def tell(self, about: Mapping[str, Any], *, kind: str, message: str) -> None:
        """Post an event on an object, given as `Writer.warn` takes it. Raises ApiError."""
        now = self._now()
        key = (str(about["uid"]), kind)
        last = self._told.pop(key, None)
        if last is not None and now - last < PAUSE:
            self._told[key] = last
            return
        await self._writer.warn(dict(about), reason=kind, message=message, now=timestamp(now))
        self._told[key] = now
        if len(self._told) > MOST_REMEMBERED:
            del self._told[next(iter(self._told))]

    @property
    def hears_of_all(self) -> bool:
        """Whether the leader leads for so long that every sender has had its time to report."""
        return (self._now() - self._began).total_seconds() >= SILENT_AFTER_SECONDS

    def told_lately(self, uid: str, kind: str) -> bool:
        """Whether `tell` would say nothing about this now."""
        last = self._told.get((uid, kind))
        return last is not None and self._now() - last < PAUSE


def turned(before: Mapping[str, Any], after: Mapping[str, Any], kind: str, to: str) -> bool:
    """Whether the condition came to this status between two statuses of an object."""
    then, now = (condition(status, kind).get("status") for status in (before, after))
    return now == to and then != to

"""Events on pods whose limit nothing holds, or whose framework ran into its cap."""

import asyncio
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from gpumem_operator.controllers.about import about_pod
from gpumem_operator.controllers.worker import attempt, timestamp, utc_now
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.reports.incidents import MOST_AT_ONCE, Incident, Incidents
from gpumem_operator.reports.snapshot import Snapshot
from gpumem_operator.reports.store import SILENT_AFTER_SECONDS

_WAITING: Final = 5 * MOST_AT_ONCE


class IncidentWorker:
    """Posts what `look` finds, one after the other; what does not fit in waits for a later look."""

    def __init__(
        self,
        writer: Writer,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._writer = writer
        self._monotonic = monotonic
        self._now = now
        # Of pods as young as this an earlier leader may have heard nothing yet.
        since = now() - timedelta(seconds=SILENT_AFTER_SECONDS)
        self._incidents = Incidents(monotonic(), since=timestamp(since))
        self._waiting: asyncio.Queue[Incident] = asyncio.Queue(_WAITING)

    def look(self, snapshot: Snapshot) -> None:
        """Take up what is new in this snapshot."""
        room = self._waiting.maxsize - self._waiting.qsize()
        for incident in self._incidents.look(snapshot, self._monotonic(), room=room):
            self._waiting.put_nowait(incident)

    async def run(self) -> None:
        while True:
            incident = await self._waiting.get()
            with attempt("incidents", f"pod {incident.pod.title}") as outcome:
                await self._post(incident)
            if outcome.failed:
                self._incidents.take_back(incident)

    async def _post(self, incident: Incident) -> None:
        await self._writer.warn(
            about_pod(incident.pod),
            reason=incident.reason,
            message=incident.message,
            now=timestamp(self._now()),
        )

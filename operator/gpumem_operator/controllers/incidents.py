"""Events on pods whose limit nothing holds, or whose framework ran into its cap."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from gpumem_operator.controllers.worker import attempt, timestamp, utc_now
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.reports.incidents import MOST_AT_ONCE, Incident, Incidents
from gpumem_operator.reports.snapshot import Snapshot

_WAITING: Final = 5 * MOST_AT_ONCE


class IncidentWorker:
    """Posts what `look` finds, one after the other; what does not fit in is not posted."""

    def __init__(self, writer: Writer, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._writer = writer
        self._monotonic = monotonic
        self._incidents = Incidents(monotonic())
        self._waiting: asyncio.Queue[Incident] = asyncio.Queue(_WAITING)

    def look(self, snapshot: Snapshot) -> None:
        """Take up what is new in this snapshot."""
        for incident in self._incidents.look(snapshot, self._monotonic()):
            if not self._waiting.full():
                self._waiting.put_nowait(incident)

    async def run(self) -> None:
        while True:
            incident = await self._waiting.get()
            with attempt("incidents", f"pod {incident.pod.title}"):
                await self._post(incident)

    async def _post(self, incident: Incident) -> None:
        pod = incident.pod
        about = {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
        }
        await self._writer.warn(
            about, reason=incident.reason, message=incident.message, now=timestamp(utc_now())
        )

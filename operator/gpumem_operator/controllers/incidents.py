"""Events on pods whose limit nothing holds, or whose framework ran into its cap."""

import asyncio
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from gpumem_operator.api.policy import DefaultPolicySpec
from gpumem_operator.controllers.about import about_pod
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.worker import attempt, timestamp, utc_now
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.reports.incidents import MOST_AT_ONCE, Incident, Incidents
from gpumem_operator.reports.measured import MeasuredPod
from gpumem_operator.reports.snapshot import Snapshot
from gpumem_operator.reports.store import SILENT_AFTER_SECONDS

_WAITING: Final = 5 * MOST_AT_ONCE


class IncidentWorker:
    """Posts what `look` finds, one after the other; what does not fit in waits for a later look."""

    def __init__(
        self,
        writer: Writer,
        cache: Cache,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._writer = writer
        self._cache = cache
        self._monotonic = monotonic
        self._now = now
        # Of pods as young as this an earlier leader may have heard nothing yet.
        since = now() - timedelta(seconds=SILENT_AFTER_SECONDS)
        self._incidents = Incidents(monotonic(), since=timestamp(since))
        self._waiting: asyncio.Queue[Incident] = asyncio.Queue(_WAITING)

    def look(self, snapshot: Snapshot) -> None:
        """Take up what is new in this snapshot."""
        room = self._waiting.maxsize - self._waiting.qsize()
        found = self._incidents.look(
            snapshot, self._monotonic(), room=room, observed=self._only_observed
        )
        for incident in found:
            self._waiting.put_nowait(incident)

    def _only_observed(self, pod: MeasuredPod) -> bool:
        """By the policy whose plan it carries, as that is today; else by its tenant's default."""
        row = self._cache.policies.get((pod.namespace, pod.policy)) if pod.policy else None
        if row is not None:
            spec: DefaultPolicySpec | None = row.value.record.spec
        else:
            tenants = self._cache.memberships.by_namespace.get(pod.namespace, ())
            specs = (one.spec.default_policy for one in tenants if one.spec is not None)
            spec = next((one for one in specs if one is not None), None)
        return spec is not None and spec.mode == "Observe"

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

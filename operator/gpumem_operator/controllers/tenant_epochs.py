"""The leader's epoch in the status of every tenant, and what is stored there under it.

A tenant whose status can not be written (a policy engine refuses it, a webhook is silent) is left
out for a while that grows, and tried again: nothing is decided about it meanwhile, and all others
go on.
"""

import logging
from collections.abc import Mapping
from typing import Any

from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.entries import TenantEntry
from gpumem_operator.controllers.pauses import Pauses
from gpumem_operator.controllers.table import Row
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.errors import ApiError, Conflict, NotFound
from gpumem_operator.kube.lease import LeadershipLost
from gpumem_operator.kube.resources import TENANTS
from gpumem_operator.ledger import epoch
from gpumem_operator.ledger.epoch import Standing
from gpumem_operator.metrics.controller import RECONCILE_ERRORS

_LOG = logging.getLogger(__name__)


class TenantEpochs:
    """Of one leader."""

    def __init__(self, cache: Cache, writer: Writer, pauses: Pauses) -> None:
        self._cache = cache
        self._writer = writer
        self._pauses = pauses
        self._failing: set[str] = set()
        """Uids of tenants whose last write failed."""
        self._raised: set[str] = set()
        """Uids of tenants that this leader wrote its epoch into."""
        self.epoch = 0
        self.begun = False
        """Whether the pods were listed under it."""

    @property
    def left_out(self) -> frozenset[str]:
        """Names of tenants that nothing is decided about at present."""
        rows = self._cache.tenants.rows()
        return frozenset(name for (_, name), row in rows if self._waits(row))

    def _waits(self, row: Row[TenantEntry]) -> bool:
        failing = row.uid in self._failing
        # Also one whose pause has just ended, as long as another leader's epoch may stand there.
        return failing and (
            not self._pauses.is_over(row.uid) or self._standing(row) is not Standing.OWN
        )

    async def begin(self) -> None:
        """Raise the epoch of every tenant, then list the pods: only then anything is decided."""
        rows = [row.value.status.get("epoch") for _, row in self._cache.tenants.rows()]
        self.begun = False
        self._raised.clear()
        self.epoch = epoch.next_epoch(rows)
        for (_, name), _ in list(self._cache.tenants.rows()):
            await self._raise(name)
        await self._cache.list_pods(self._writer.api)
        self.begun = True

    async def adopt(self) -> bool:
        """Tenants that came since, or that an earlier leader wrote to once more. Whether all had to
        begin anew; raises LeadershipLost where one has a later epoch."""
        late = False
        for (_, name), row in list(self._cache.tenants.rows()):
            stored = row.value.status.get("epoch")
            match self._standing(row):
                case Standing.TAKEN:
                    await self.begin()
                    return True
                case Standing.LATER:
                    raise LeadershipLost(
                        f"tenant {name} has epoch {stored}, and this leader's is {self.epoch}:"
                        " another one leads"
                    )
                case Standing.EARLIER:
                    raised = await self._raise(name)
                    late = late or (raised and stored is not None)
                case Standing.OWN:
                    pass
        if late:
            await self._cache.list_pods(self._writer.api)
        return False

    async def _raise(self, name: str) -> bool:
        """What is stored then is known: the answer is taken in. Whether it could be written; raises
        Conflict after a retry."""
        row = self._cache.tenants.get(("", name))
        standing = row and self._standing(row)
        if row is None or standing is Standing.OWN:
            return False
        if standing is not Standing.EARLIER:
            raise Conflict(f"tenant {name}", "another leader has an epoch as high", 409)
        if not self._pauses.is_over(row.uid) or not await self._try(
            name, row, {"epoch": self.epoch}
        ):
            return False
        self._raised.add(row.uid)
        return True

    async def store(self, name: str, row: Row[TenantEntry], status: Mapping[str, Any]) -> None:
        """Write fields of the status as it was read, which has to have this leader's epoch; or
        leave the tenant out. Raises Conflict where it changed meanwhile."""
        if self._standing(row) is not Standing.OWN:
            # It may be another leader's by now: that is not written over.
            raise Conflict(f"tenant {name}", "its epoch changed since it was adopted", 409)
        await self._try(name, row, status)

    def _standing(self, row: Row[TenantEntry]) -> Standing:
        stored = row.value.status.get("epoch")
        return epoch.standing(stored, self.epoch, raised=row.uid in self._raised)

    async def _try(self, name: str, row: Row[TenantEntry], status: Mapping[str, Any]) -> bool:
        try:
            await self._write(name, row, status)
        except Conflict:
            raise
        except ApiError as error:
            RECONCILE_ERRORS.labels("queue").inc()
            self._failing.add(row.uid)
            pause = self._pauses.begin(row.uid)
            text = "tenant %s is left out of the queue, and tried again in %.0f s: %s"
            _LOG.warning(text, name, pause, error)
            return False
        self._failing.discard(row.uid)
        self._pauses.keep(self._failing)
        return True

    async def _write(self, name: str, row: Row[TenantEntry], status: Mapping[str, Any]) -> None:
        """Raises Conflict where the tenant changed or is gone, of which the cache knows then."""
        path = TENANTS.path(name, subresource="status")
        tenants = self._cache.tenants
        # The next decision has to know what is stored now, and not when the watch tells it.
        try:
            tenants.see(await self._writer.store_status(path, row.version, status))
        except (Conflict, NotFound) as error:
            try:
                tenants.see(await self._writer.api.get(TENANTS.path(name)))
            except NotFound:
                tenants.drop(("", name), row.uid)
            raise Conflict(f"tenant {name}", str(error), 409) from error

"""Where pods ask one tenant for room: those that come while a write is on its way go together.

    asked -> read the tenant -> answer -> write with its resourceVersion -> told
                 ^                                    |
                 +------- somebody was faster <-------+   with who came meanwhile

Each write is decided by what was read after its pods had asked, and is refused by the API server
where the tenant changed since. A pod that gave up, or was refused elsewhere, has its room given
back with the next write; where that is lost, the leader finds that there is no such pod.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from gpumem_operator.kube.errors import ApiError, Conflict, NotFound
from gpumem_operator.kube.resources import TENANTS
from gpumem_operator.kube.rest import Api
from gpumem_operator.ledger.book import Obstacle
from gpumem_operator.ledger.charged_pod import ChargedPod
from gpumem_operator.ledger.reservation import Reservation, reservation_rows
from gpumem_operator.ledger.reserve import Answers, Asking, Page, answer, page_of
from gpumem_operator.webhook import telemetry

logger = logging.getLogger(__name__)

REQUEST_SECONDS: Final = 1.0
"""For each request: pods wait for 1.5 s, and the next batch has to have a chance."""


@dataclass(frozen=True)
class Refusal:
    """Why a pod gets no room in a tenant, and who holds most of it."""

    obstacle: Obstacle
    holders: tuple[ChargedPod, ...]


class TenantStore(Protocol):
    """Tenants at the API server."""

    async def read(self, tenant: str) -> Page:
        """As it is stored now. Raises NotFound, ApiError."""

    async def write(self, page: Page, reservations: tuple[Reservation, ...]) -> None:
        """Replace the reservations of what was read. Raises Conflict, NotFound, ApiError."""


class StoredTenants:
    """The real one."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def read(self, tenant: str) -> Page:
        return page_of(await self._api.get(TENANTS.path(tenant), seconds=REQUEST_SECONDS))

    async def write(self, page: Page, reservations: tuple[Reservation, ...]) -> None:
        body: Mapping[str, Any] = {
            "metadata": {"resourceVersion": page.version},
            "status": {"reservations": reservation_rows(reservations)},
        }
        path = TENANTS.path(page.tenant, subresource="status")
        await self._api.merge(path, body, seconds=REQUEST_SECONDS)


@dataclass(eq=False)
class _Place:
    """One pod at the desk."""

    pod: Asking
    told: asyncio.Future[Refusal | None] = field(default_factory=asyncio.Future)

    def tell(self, refusal: Refusal | None) -> None:
        if not self.told.done():
            self.told.set_result(refusal)

    def fail(self, error: Exception) -> None:
        if not self.told.done():
            self.told.set_exception(error)


class Desk:
    """One tenant's. It works as long as somebody is there."""

    def __init__(self, tenant: str, store: TenantStore) -> None:
        self._tenant = tenant
        self._store = store
        self._arrived: list[_Place] = []
        self._returned: set[str] = set()
        self._work: asyncio.Task[None] | None = None

    async def ask(self, pod: Asking) -> Refusal | None:
        """None once room for the pod is stored, or none is needed. Raises ApiError."""
        place = _Place(pod)
        self._arrived.append(place)
        self._wake()
        try:
            return await place.told
        except asyncio.CancelledError:
            if place in self._arrived:
                self._arrived.remove(place)
            else:
                self.give_back(pod.uid)
            raise

    def give_back(self, uid: str) -> None:
        """The pod will never be: nobody is to wait for its room."""
        self._returned.add(uid)
        self._wake()

    def _wake(self) -> None:
        if self._work is None:
            self._work = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self._arrived or self._returned:
            await self._serve()
        self._work = None

    async def _serve(self) -> None:
        """Answer who is there, and who comes until their answers are stored."""
        batch: list[_Place] = []
        returned: set[str] = set()
        try:
            page, answers = await self._store_answers(batch, returned)
        except NotFound:
            # No tenant, no quota. Surroundings are read again for the next pod.
            for place in batch:
                place.tell(None)
        except Exception as error:
            self._fail(batch, error)
        else:
            for place in batch:
                obstacle = answers.refused.get(place.pod.uid)
                place.tell(Refusal(obstacle, page.holders) if obstacle else None)

    async def _store_answers(self, batch: list[_Place], returned: set[str]) -> tuple[Page, Answers]:
        while True:
            batch += self._arrived
            returned |= self._returned
            self._arrived, self._returned = [], set()
            page = await self._store.read(self._tenant)
            asking = [place.pod for place in batch if not place.told.cancelled()]
            answers = answer(page, asking, returned=returned)
            if answers.reservations == page.reservations:
                return page, answers
            try:
                await self._store.write(page, answers.reservations)
            except Conflict:
                telemetry.RESERVATION_WRITES.labels("overtaken").inc()
                continue
            telemetry.RESERVATION_WRITES.labels("stored").inc()
            return page, answers

    def _fail(self, batch: list[_Place], error: Exception) -> None:
        telemetry.RESERVATION_WRITES.labels("failed").inc()
        if not isinstance(error, ApiError):
            logger.exception("Room in tenant %s could not be reserved", self._tenant)
        # What was written without an answer is given back once; after that it lapses.
        self._returned |= {place.pod.uid for place in batch}
        for place in batch:
            place.fail(error)

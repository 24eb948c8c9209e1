"""Reservations of pods that nobody has seen: are there such pods at all?"""

import time
from collections.abc import Callable

from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.queue_picture import Picture
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.errors import NotFound
from gpumem_operator.kube.resources import NAMESPACES, PODS
from gpumem_operator.ledger.reservation import Reservation, overdue, unseen_since


class LostPods:
    """Of one leader, which looks for them by name."""

    def __init__(
        self, cache: Cache, writer: Writer, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._cache = cache
        self._writer = writer
        self._monotonic = monotonic
        self._unseen: dict[str, float] = {}
        """By uid, since when."""

    async def look(self, picture: Picture) -> frozenset[str]:
        """Uids of those that are found not to be there."""
        unseen = {
            one.pod_uid: one for one in picture.reservations if one.pod_uid not in picture.seen
        }
        now = self._monotonic()
        self._unseen = unseen_since(self._unseen, unseen, now)
        gone = set()
        for one in overdue(unseen.values(), self._unseen, now):
            if await self._is_there(one):
                self._unseen[one.pod_uid] = now
            else:
                gone.add(one.pod_uid)
        return frozenset(gone)

    async def _is_there(self, one: Reservation) -> bool:
        """Reads the pod by name; one that is there is taken in with its namespace, so that the next
        turn charges it to the tenants that it has."""
        path = PODS.path(one.name, namespace=one.namespace)
        try:
            found = await self._writer.api.get(path)
            if found["metadata"]["uid"] != one.pod_uid:
                return False
            namespace = await self._writer.api.get(NAMESPACES.path(one.namespace))
        except NotFound:
            return False
        self._cache.namespaces.see(namespace)
        self._cache.pods.see(found)
        return True

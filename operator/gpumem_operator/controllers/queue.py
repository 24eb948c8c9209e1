"""The queue of every tenant: the leader reserves in statuses, then opens gates.

One turn is taken over all tenants. What it reserves is stored before any gate is opened, so that a
crash between two requests overruns nothing; the next turn, or the next leader, goes on from there.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from gpumem_operator.api.stored_status import differs
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.entries import PodEntry, TenantEntry
from gpumem_operator.controllers.fences import Fences
from gpumem_operator.controllers.gate_opener import GateOpener
from gpumem_operator.controllers.inbox import Inbox
from gpumem_operator.controllers.lost_pods import LostPods
from gpumem_operator.controllers.options import Periods
from gpumem_operator.controllers.pauses import Pauses
from gpumem_operator.controllers.queue_events import QueueEvents
from gpumem_operator.controllers.queue_picture import Picture, picture_of
from gpumem_operator.controllers.table import Key, Row
from gpumem_operator.controllers.touched import Touched
from gpumem_operator.controllers.worker import attempt, utc_now
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.errors import ApiError, Conflict, NotFound
from gpumem_operator.kube.lease import LeadershipLost
from gpumem_operator.kube.resources import NAMESPACES, TENANTS
from gpumem_operator.ledger import epoch
from gpumem_operator.ledger.epoch import Standing
from gpumem_operator.ledger.queue import Turn, decide
from gpumem_operator.ledger.queue_status import queue_status
from gpumem_operator.metrics.controller import RECONCILE_SECONDS

_LOG = logging.getLogger(__name__)
_SETTLE: Final = 0.05
"""Seconds in which changes are gathered: a queue that moves is written some times a second."""
_LOOK_AGAIN: Final = 10.0
"""Seconds: reservations lapse, and pods begin to hold, without any event."""


class QueueWorker:
    """Lets waiting pods through while this process leads."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        *,
        values: Values,
        periods: Periods,
        now: Callable[[], datetime] = utc_now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cache = cache
        self._writer = writer
        self._values = values
        self._periods = periods
        self._now = now
        self._epoch = 0
        self._begun = False
        self._raised: set[str] = set()
        """Uids of tenants that this leader wrote its epoch into."""
        self._touched = Touched()
        self._gone: set[str] = set()
        """Uids of pods that are not there any more, of which a reservation may be left."""
        self._lost = LostPods(cache, writer, monotonic=monotonic)
        self._events = QueueEvents(writer, now=now)
        self._changed: Inbox[str] = Inbox()
        self.counted: Callable[[], None] = lambda: None
        """Called once this leader has listed the pods under its epoch."""

        def pauses(what: str) -> Pauses:
            again = partial(self._changed.add, what)
            return Pauses(periods.retry, again=again, monotonic=monotonic)

        self._opener = GateOpener(cache, writer, pauses("gates"))
        self._fences = Fences(cache, writer, pauses("fences"))
        cache.pods.listeners.append(self._pod_changed)
        cache.tenants.listeners.append(lambda _, __, ___: self._changed.add("tenants"))
        cache.namespaces.listeners.append(self._namespace_changed)

    @property
    def epoch(self) -> int | None:
        """This leader's; None before it has listed the pods under it."""
        return self._epoch if self._begun else None

    def _namespace_changed(self, *_: object) -> None:
        self._touched.everything = True
        self._changed.add("namespaces")

    def _pod_changed(self, key: Key, old: PodEntry | None, new: PodEntry | None) -> None:
        self._touched.namespaces.add(key[0])
        if old is not None and (new is None or new.uid != old.uid):
            self._gone.add(old.uid)
        self._changed.add("pods")

    async def run(self) -> None:
        await self._until_done("beginning", self.begin)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._events.run())
            group.create_task(self._opener.run())
            group.create_task(self._turns())

    async def _turns(self) -> None:
        self._changed.add("start")
        while True:
            try:
                async with asyncio.timeout(_LOOK_AGAIN):
                    await self._changed.take(settle=_SETTLE)
            except TimeoutError:
                pass
            with RECONCILE_SECONDS.labels("queue").time():
                await self._until_done("turn", self.turn)

    async def _until_done(self, what: str, work: Callable[[], Any]) -> None:
        while True:
            with attempt("queue", what) as outcome:
                await work()
            if not outcome.failed:
                return
            if not outcome.overtaken:
                await asyncio.sleep(self._periods.retry)

    async def begin(self) -> None:
        """Raise the epoch of every tenant, then list the pods: only then anything is decided."""
        rows = [row.value.status.get("epoch") for _, row in self._cache.tenants.rows()]
        self._begun = False
        self._raised.clear()
        self._epoch = epoch.next_epoch(rows)
        for (_, name), _ in list(self._cache.tenants.rows()):
            await self._raise_epoch(name)
        await self._cache.list_pods(self._writer.api)
        self._begun = True
        self._touched.everything = True
        self.counted()

    async def turn(self) -> None:
        """Reserve what there is room for, and open the gates of pods that have all they need."""
        touched, self._touched = self._touched, Touched()
        try:
            await self._turn(touched)
        except BaseException:
            self._touched.add(touched)
            raise

    async def _turn(self, touched: Touched) -> None:
        if not self._begun:
            await self.begin()
        await self._adopt_tenants()
        recount = touched.tenants(self._cache)
        picture = await self._surely_nobodys(
            picture_of(self._cache, self._values, recount=recount), recount
        )
        self._gone |= await self._lost.look(picture)
        self._gone &= {one.pod_uid for one in picture.reservations}
        turn = await self._fenced(picture)
        failed = await self._write(picture, turn)
        # All that these need was stored before. What a later leader fenced is for it to decide.
        self._opener.open(pod for pod in turn.through if pod.fenced_by <= self._epoch)
        self._events.tell(picture, turn)
        if failed is not None:
            raise failed

    async def _fenced(self, picture: Picture) -> Turn:
        """A decision that takes room back from nobody who could not be fenced before."""
        self._fences.keep(picture.waiting)
        keeping: frozenset[str] = frozenset()
        fenced: frozenset[str] = frozenset()
        while True:
            turn = self._decide(picture, keeping=keeping)
            due = [pod for pod in turn.lacking if pod.uid not in fenced]
            failed = await self._fences.put(due, epoch=self._epoch)
            if not failed:
                return turn
            fenced |= {pod.uid for pod in due} - failed
            keeping |= failed

    def _decide(self, picture: Picture, *, keeping: Container[str] = frozenset()) -> Turn:
        return decide(
            picture.accounts,
            picture.waiting,
            opened=picture.opened,
            gone=self._gone,
            keeping=keeping,
            alive=picture.alive,
            now=self._now().timestamp(),
        )

    async def _adopt_tenants(self) -> None:
        """Tenants that came since, or that an earlier leader wrote to once more."""
        late = False
        for (_, name), row in list(self._cache.tenants.rows()):
            stored = row.value.status.get("epoch")
            match self._standing(row):
                case Standing.TAKEN:
                    await self.begin()
                    return
                case Standing.LATER:
                    raise LeadershipLost(
                        f"tenant {name} has epoch {stored}, and this leader's is {self._epoch}:"
                        " another one leads"
                    )
                case Standing.EARLIER:
                    await self._raise_epoch(name)
                    late = late or stored is not None
                case Standing.OWN:
                    pass
        if late:
            await self._cache.list_pods(self._writer.api)

    async def _raise_epoch(self, name: str) -> None:
        """What is stored then is known: the answer is taken in. Raises Conflict after a retry."""
        row = self._cache.tenants.get(("", name))
        standing = row and self._standing(row)
        if row is None or standing is Standing.OWN:
            return
        if standing is not Standing.EARLIER:
            raise Conflict(f"tenant {name}", "another leader has an epoch as high", 409)
        await self._write_status(name, row, {"epoch": self._epoch})
        self._raised.add(row.uid)

    async def _write(self, picture: Picture, turn: Turn) -> ApiError | None:
        """The statuses that differ, in the order of names; what the first failed with that could
        not be written, which holds up no other. Raises Conflict where one changed."""
        failed = None
        for account in picture.accounts:
            stored = picture.stored[account.name]
            generation = stored.value.record.generation
            wanted = queue_status(account, turn, epoch=self._epoch, generation=generation)
            if differs(stored.value.status, wanted):
                self._check_epoch(account.name, stored)
                try:
                    await self._write_status(account.name, stored, wanted)
                except Conflict:
                    raise
                except ApiError as error:
                    failed = failed or error
        return failed

    def _check_epoch(self, name: str, stored: Row[TenantEntry]) -> None:
        """What was read while the turn went on may be another leader's: it is not written over."""
        if self._standing(stored) is not Standing.OWN:
            raise Conflict(f"tenant {name}", "its epoch changed since it was adopted", 409)

    def _standing(self, row: Row[TenantEntry]) -> Standing:
        stored = row.value.status.get("epoch")
        return epoch.standing(stored, self._epoch, raised=row.uid in self._raised)

    async def _write_status(
        self, name: str, row: Row[TenantEntry], status: Mapping[str, Any]
    ) -> None:
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

    async def _surely_nobodys(self, picture: Picture, recount: Container[str]) -> Picture:
        """A gate that no tenant wants is opened at once, and the room of a pod whose namespace has
        left the tenant is free at once: so both have to be true.

        The watch of pods may be ahead of those of tenants and namespaces: these are read anew.
        """
        unwanted = {
            pod.uid: pod.namespace
            for pod in picture.waiting
            if pod.needs is not None and not pod.needs
        }
        if not unwanted and not picture.stray:
            return picture
        for raw in (await self._writer.api.get(TENANTS.path())).get("items") or ():
            self._cache.tenants.see(raw)
        for name in {*unwanted.values(), *picture.stray.values()}:
            with suppress(NotFound):
                self._cache.namespaces.see(await self._writer.api.get(NAMESPACES.path(name)))
        await self._adopt_tenants()
        again = picture_of(self._cache, self._values, recount=recount, known=picture.stray)
        # About one that came meanwhile nobody was asked: it is for the turn that its coming wants.
        sure = [pod for pod in again.waiting if pod.needs != {} or pod.uid in unwanted]
        return replace(again, waiting=tuple(sure))

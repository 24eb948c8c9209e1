"""The queue of every tenant: the leader reserves in statuses, then opens gates.

One turn is taken over all tenants. What it reserves is stored before any gate is opened, so that a
crash between two requests overruns nothing; the next turn, or the next leader, goes on from there.
"""

import asyncio
import time
from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from gpumem_operator.api.stored_status import differs
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.entries import PodEntry
from gpumem_operator.controllers.fences import Fences
from gpumem_operator.controllers.gate_opener import GateOpener
from gpumem_operator.controllers.inbox import Inbox
from gpumem_operator.controllers.lost_pods import LostPods
from gpumem_operator.controllers.options import Periods
from gpumem_operator.controllers.pauses import Pauses
from gpumem_operator.controllers.queue_events import QueueEvents
from gpumem_operator.controllers.queue_picture import Picture, picture_of
from gpumem_operator.controllers.table import Key
from gpumem_operator.controllers.tenant_epochs import TenantEpochs
from gpumem_operator.controllers.touched import Touched
from gpumem_operator.controllers.worker import attempt, utc_now
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.errors import NotFound
from gpumem_operator.kube.resources import NAMESPACES, TENANTS
from gpumem_operator.ledger.queue import Turn, decide
from gpumem_operator.ledger.queue_status import queue_status
from gpumem_operator.metrics.controller import RECONCILE_SECONDS

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
        self._touched = Touched()
        self._gone: set[str] = set()
        """Uids of pods that are not there any more, of which a reservation may be left."""
        self._lost = LostPods(cache, writer, monotonic=monotonic)
        self._events = QueueEvents(writer, now=now)
        self._changed: Inbox[str] = Inbox()
        self.counted: Callable[[], None] = lambda: None
        """Called once this leader has listed the pods under its epoch."""

        def pauses(again: Callable[[], None]) -> Pauses:
            return Pauses(periods.retry, again=again, monotonic=monotonic)

        self._opener = GateOpener(cache, writer, pauses(partial(self._changed.add, "gates")))
        self._fences = Fences(cache, writer, pauses(partial(self._changed.add, "fences")))
        self._epochs = TenantEpochs(cache, writer, pauses(self._tenants_again))
        cache.pods.listeners.append(self._pod_changed)
        cache.tenants.listeners.append(lambda _, __, ___: self._changed.add("tenants"))
        cache.namespaces.listeners.append(self._namespace_changed)

    @property
    def epoch(self) -> int | None:
        """This leader's; None before it has listed the pods under it."""
        return self._epochs.epoch if self._epochs.begun else None

    def _tenants_again(self) -> None:
        # What changed while one was left out was not counted for it.
        self._touched.everything = True
        self._changed.add("tenants")

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
        """Nothing is decided before the pods were listed under this leader's epoch."""
        await self._epochs.begin()
        self._count_everything()

    async def _adopt(self) -> None:
        if await self._epochs.adopt():
            self._count_everything()

    def _count_everything(self) -> None:
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
        if not self._epochs.begun:
            await self.begin()
        await self._adopt()
        recount = touched.tenants(self._cache)
        picture = await self._surely_nobodys(self._picture(recount), recount)
        self._gone |= await self._lost.look(picture)
        self._gone &= {one.pod_uid for one in picture.reservations}
        turn = await self._fenced(picture)
        await self._write(picture, turn)
        # All that these need was stored before. What a later leader fenced is for it to decide.
        self._opener.open(pod for pod in turn.through if pod.fenced_by <= self._epochs.epoch)
        self._events.tell(picture, turn)

    async def _fenced(self, picture: Picture) -> Turn:
        """A decision that takes room back from nobody who could not be fenced before."""
        self._fences.keep(picture.waiting)
        keeping: frozenset[str] = frozenset()
        fenced: frozenset[str] = frozenset()
        while True:
            turn = self._decide(picture, keeping=keeping)
            due = [pod for pod in turn.lacking if pod.uid not in fenced]
            failed = await self._fences.put(due, epoch=self._epochs.epoch)
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

    async def _write(self, picture: Picture, turn: Turn) -> None:
        """The statuses that differ, in the order of names. Raises Conflict where one changed; one
        that can not be written holds up no other."""
        for account in picture.accounts:
            stored = picture.stored[account.name]
            generation = stored.value.record.generation
            wanted = queue_status(account, turn, epoch=self._epochs.epoch, generation=generation)
            if differs(stored.value.status, wanted):
                await self._epochs.store(account.name, stored, wanted)

    def _picture(self, recount: Container[str], known: Container[str] = frozenset()) -> Picture:
        without = self._epochs.left_out
        return picture_of(self._cache, self._values, recount=recount, known=known, without=without)

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
        await self._adopt()
        again = self._picture(recount, known=picture.stray)
        # About one that came meanwhile nobody was asked: it is for the turn that its coming wants.
        sure = [pod for pod in again.waiting if pod.needs != {} or pod.uid in unwanted]
        return replace(again, waiting=tuple(sure))

"""Leading by a Lease: one process at a time works, and stops before another may begin.

The client library's own election was seen with two leaders for seconds, because its requests have
no timeout and its work is not awaited. Here every request ends before the deadline, any failure
counts as a failed renewal, and work that is cancelled is awaited before anything else happens.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Protocol

from gpumem_operator.kube import election
from gpumem_operator.kube.api import Object
from gpumem_operator.kube.election import DEFAULT_TIMINGS, Claim, Sighting, Step, Timings
from gpumem_operator.kube.errors import ApiError, NotFound
from gpumem_operator.kube.resources import LEASES

_LOG = logging.getLogger(__name__)


class LeadershipLost(Exception):
    """The process must not write any more, and must end so that it starts from nothing."""


class LeaseApi(Protocol):
    """The part of the API that an election needs."""

    async def get(self, path: str, *, seconds: float = ...) -> Object: ...
    async def create(self, path: str, body: Object, *, seconds: float = ...) -> Object: ...
    async def replace(self, path: str, body: Object, *, seconds: float = ...) -> Object: ...


class Leadership:
    """This process's part in the election over one Lease.

    `ending` is called when the work is about to be told to end.
    """

    def __init__(
        self,
        api: LeaseApi,
        *,
        namespace: str,
        name: str,
        identity: str,
        timings: Timings = DEFAULT_TIMINGS,
        monotonic: Callable[[], float] = time.monotonic,
        ending: Callable[[], None] = lambda: None,
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._path = LEASES.path(name, namespace=namespace)
        self._identity = identity
        self._timings = timings
        self._monotonic = monotonic
        self._ending = ending
        self._lease: Object | None = None
        self._sighting = Sighting(Claim(), monotonic())
        self._deadline: float | None = None
        self._last_round = monotonic()
        self._working = False

    @property
    def leading(self) -> bool:
        """Whether this process may write now."""
        return self._deadline is not None and self._monotonic() < self._deadline

    @property
    def stalled(self) -> str | None:
        """None while the loop goes round; else a sentence about how long it has not."""
        silent = self._monotonic() - self._last_round
        # A round takes one pause and at most the time in which its requests must end.
        longest = self._timings.retry_seconds + self._timings.renew_seconds
        return None if silent <= longest else f"the lease was last looked at {silent:.0f} s ago"

    @property
    def lapsed(self) -> str | None:
        """None, or why nobody may be told what this process remembers: its work goes on, and its
        lease is not its own any more. Said by the clock alone: a process that was stopped for a
        while says it before it could look at the lease again."""
        return self._loss() if self._working and not self.leading else None

    def check(self) -> None:
        """Raise LeadershipLost where this process may not write. Asked before every write."""
        if not self.leading:
            raise LeadershipLost(self._loss())

    def _loss(self) -> str:
        holder = self._sighting.claim.holder
        return (
            f"{self._identity} does not hold the lease {self._namespace}/{self._name} any more;"
            + (f" {holder} took it" if holder != self._identity else " it was not renewed")
        )

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait until this process leads, work, and keep the lease meanwhile.

        Returns when the work ends by itself. Raises LeadershipLost when the lease could not be
        renewed in time; the work has then been cancelled and has ended. Where this is cancelled,
        the work ends first, and then the lease is released for the next.
        """
        await self._candidate()
        _LOG.info("%s leads (lease %s/%s)", self._identity, self._namespace, self._name)
        self._working = True
        worker = asyncio.create_task(work(), name="leader's work")
        renewal = asyncio.create_task(self._keep(), name="lease renewal")
        try:
            await asyncio.wait({worker, renewal}, return_when=asyncio.FIRST_COMPLETED)
            if renewal.done():
                renewal.result()
        finally:
            self._ending()
            # In this order: nothing may be written under a lease that nobody renews.
            await _end(worker)
            self._working = False
            await _end(renewal)
            await self._release()
        await worker

    @property
    def write_seconds(self) -> float:
        """How long a write that begins now may take: it ends before another leader can begin."""
        grace = self._timings.lease_seconds - self._timings.renew_seconds
        return 0.0 if self._deadline is None else self._deadline + grace - self._monotonic()

    async def _candidate(self) -> None:
        while True:
            if await self._round():
                return
            await asyncio.sleep(self._timings.retry_seconds)

    async def _keep(self) -> None:
        """Renew until that did not succeed for too long; raises LeadershipLost."""
        while self._deadline is not None:
            left = self._deadline - self._monotonic()
            await asyncio.sleep(max(min(self._timings.retry_seconds, left), 0.0))
            self.check()
            await self._round()
        self.check()

    async def _round(self) -> bool:
        """One look at the Lease and at most one write; whether we hold it afterwards."""
        self._last_round = started = self._monotonic()
        limit = self._timings.renew_seconds - self._timings.retry_seconds
        if self._deadline is not None:
            limit = min(limit, self._deadline - started)
        try:
            async with asyncio.timeout(max(limit, 0.0)):
                held = await self._look_and_write(limit)
        except Exception as error:  # Whatever it is: the lease was not renewed.
            _LOG.warning("lease %s/%s: %r", self._namespace, self._name, error)
            return False
        # Counted from before the request: the API server may have stored it right then.
        self._deadline = started + self._timings.renew_seconds if held else None
        return held

    async def _look_and_write(self, limit: float) -> bool:
        try:
            self._lease = await self._api.get(self._path, seconds=limit)
        except NotFound:
            self._lease = None
        claim = election.read_claim(self._lease or {})
        self._sighting = election.observe(self._sighting, claim, self._monotonic())
        if election.decide(self._sighting, self._identity, self._monotonic()) is Step.WAIT:
            return False
        wanted = election.claimed(
            claim, self._identity, wall_time=_wall_time(), timings=self._timings
        )
        await self._write(wanted, limit)
        return True

    async def _write(self, claim: Claim, limit: float) -> None:
        body = election.lease_object(self._lease, claim, name=self._name, namespace=self._namespace)
        write: Callable[..., Awaitable[Object]] = self._api.replace
        path = self._path
        if self._lease is None:
            write, path = self._api.create, LEASES.path(namespace=self._namespace)
        self._lease = await write(path, body, seconds=limit)
        self._sighting = Sighting(claim, self._monotonic())

    async def _release(self) -> None:
        """Let the next begin at once; where that fails, it begins after the lease's duration."""
        if not self.leading:
            self._deadline = None
            return
        self._deadline = None
        claim = election.released(self._sighting.claim, wall_time=_wall_time())
        with suppress(ApiError, TimeoutError):
            async with asyncio.timeout(self._timings.retry_seconds):
                await self._write(claim, self._timings.retry_seconds)
                _LOG.info("lease %s/%s released", self._namespace, self._name)


async def _end(task: asyncio.Task[None]) -> None:
    """Cancel the task and wait until it has ended, whatever it ends with."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled() and (error := task.exception()) is not None:
        _LOG.warning("%s ended: %r", task.get_name(), error)


def _wall_time() -> str:
    """Now as Kubernetes' MicroTime, for people: nobody decides by it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

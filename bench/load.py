"""Creates pods as fast as some clients can, or at a fixed rate, and times every request."""

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count as numbers
from itertools import repeat
from types import TracebackType
from typing import Self

import aiohttp

from bench.shapes import EACH, Pod
from gpumem_operator.kube.connection import Connection
from gpumem_operator.kube.rest import open_session

REQUEST_SECONDS = 30.0
_EACH = EACH.encode()


class LoadError(Exception):
    """A pod was not created, so the times would mean nothing."""


@dataclass(frozen=True)
class Load:
    """How pods are created."""

    clients: int
    """Requests at the same time at most; with a rate, connections."""
    per_second: float | None = None
    """None: each client sends its next request when the last one was answered."""
    dry_run: bool = True

    @property
    def title(self) -> str:
        kind = "dry run" if self.dry_run else "created"
        if self.per_second is not None:
            return f"{self.per_second:g} per second, {kind}"
        return f"{self.clients} client{'s' if self.clients > 1 else ''}, {kind}"


class Generator:
    """Connections of its own to one API server; an async context manager."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._session: aiohttp.ClientSession | None = None
        self._numbers = numbers(1)

    async def __aenter__(self) -> Self:
        self._session = open_session(self._connection, most_connections=0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._session is not None
        await self._session.close()

    async def run(self, load: Load, pod: Pod, *, namespace: str, count: int) -> list[float]:
        """Seconds of each of `count` requests. Raises LoadError."""
        body = json.dumps(pod).encode()
        url = f"{self._connection.server}/api/v1/namespaces/{namespace}/pods"
        if load.dry_run:
            url += "?dryRun=All"
        if load.per_second is None:
            turns = iter(range(count))
            clients = (self._client(url, body, turns) for _ in range(load.clients))
            return [seconds for part in await asyncio.gather(*clients) for seconds in part]
        return await self._at_rate(url, body, count=count, interval=1 / load.per_second)

    async def _client(self, url: str, body: bytes, turns: Iterator[int]) -> list[float]:
        return [await self._create(url, body) for _ in turns]

    async def _at_rate(self, url: str, body: bytes, *, count: int, interval: float) -> list[float]:
        loop = asyncio.get_running_loop()
        start = loop.time()
        requests = []
        for number, _ in enumerate(repeat(None, count)):
            await asyncio.sleep(max(0.0, start + number * interval - loop.time()))
            requests.append(asyncio.create_task(self._create(url, body)))
        return await asyncio.gather(*requests)

    async def _create(self, url: str, body: bytes) -> float:
        assert self._session is not None
        body = body.replace(_EACH, b"%d" % next(self._numbers))
        started = time.perf_counter()
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        headers = {"Content-Type": "application/json"}
        while True:
            async with self._session.post(
                url, data=body, headers=headers, timeout=timeout
            ) as answer:
                content = await answer.read()
            seconds = time.perf_counter() - started
            if answer.status == 201:
                return seconds
            # Who is told to try again does, and the time goes on.
            if answer.status != 429 or seconds > REQUEST_SECONDS:
                raise LoadError(f"status {answer.status}: {content.decode(errors='replace')[:500]}")

    async def delete_all(self, namespace: str) -> None:
        """Remove the pods of a namespace at once."""
        assert self._session is not None
        url = f"{self._connection.server}/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0"
        async with self._session.delete(url) as answer:
            await answer.read()

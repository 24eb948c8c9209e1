"""Metrics of inference servers, read from their pods over plain HTTP.

A pod is somebody else's program: each answer has a deadline and a largest size, redirects are not
followed, and a pod's address leads nowhere but into the network of pods and nodes.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Final

import aiohttp

from gpumem_operator.api.scaling import EngineSignal
from gpumem_operator.controllers.entries import PodEntry
from gpumem_operator.controllers.target_pods import Signal
from gpumem_operator.scaling.exposition import UnreadableSignal, value_of

SECONDS: Final = 2.0
"""For the whole exchange with one pod."""
LARGEST_PAGE: Final = 4 * 2**20
"""Bytes; vLLM's page has some 100 KiB."""
_AT_ONCE: Final = 32

NO_ADDRESS: Final = "NoAddress"
NOT_REACHED: Final = "NotReached"
TIMEOUT: Final = "Timeout"
TOO_LARGE: Final = "TooLarge"


def address_of(entry: PodEntry) -> str | None:
    """Where the pod is reached; None before it has an address, and for one that is no pod's.

    Whoever may write a pod's status could make the controller ask itself, or the cloud's metadata
    service.
    """
    try:
        address = ip_address(str(entry.pod["status"].get("podIP") or ""))
    except ValueError:
        return None
    if address.is_loopback or address.is_link_local or address.is_multicast:
        return None
    if address.is_unspecified:
        return None
    return f"[{address}]" if address.version == 6 else str(address)


class EngineSignals:
    """Asks pods, a bounded number at a time."""

    def __init__(self, session: aiohttp.ClientSession, *, seconds: float = SECONDS) -> None:
        self._session = session
        self._seconds = seconds
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def of_pods(
        self, entries: Iterable[PodEntry], signal: EngineSignal
    ) -> Mapping[str, Signal]:
        """The signal of each started pod by its uid, or one word for why it was not read."""
        asked = [entry for entry in entries if entry.measured.started]
        answers = await asyncio.gather(*(self._of_pod(entry, signal) for entry in asked))
        return {entry.measured.uid: got for entry, got in zip(asked, answers, strict=True)}

    async def _of_pod(self, entry: PodEntry, signal: EngineSignal) -> Signal:
        address = address_of(entry)
        if address is None:
            return NO_ADDRESS
        return await self.read(f"http://{address}:{signal.port}{signal.path}", signal.metric_name)

    async def read(self, url: str, metric: str) -> Signal:
        """The metric on one page, or one word for why it was not read."""
        async with self._places:
            try:
                async with asyncio.timeout(self._seconds):
                    return value_of(await self._page(url), metric)
            except TimeoutError:
                return TIMEOUT
            except (aiohttp.ClientError, OSError, ValueError):
                return NOT_REACHED
            except UnreadableSignal as error:
                return str(error)

    async def _page(self, url: str) -> bytes:
        page = bytearray()
        async with self._session.get(url, allow_redirects=False) as answer:
            if answer.status != 200:
                raise UnreadableSignal(f"Status{answer.status}")
            async for chunk in answer.content.iter_chunked(2**16):
                page += chunk
                if len(page) > LARGEST_PAGE:
                    raise UnreadableSignal(TOO_LARGE)
        return bytes(page)


@asynccontextmanager
async def asking() -> AsyncIterator[EngineSignals]:
    """For as long as the block; proxies and credentials of this process's environment are not
    used."""
    async with aiohttp.ClientSession(
        trust_env=False, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        yield EngineSignals(session)

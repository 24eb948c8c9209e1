"""Keeps a copy of one kind: lists it, then follows its watch, and lists again where that breaks.

kopf's own watching is not used for caches that decide about pods, for two reasons: it never says
that a list is complete when the list is empty, and after an interruption that outlives the server's
history it lists again without telling which objects are gone, so that a deleted policy would rule
for ever.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final, Protocol

from gpumem_operator.kube.errors import ApiError, Gone
from gpumem_operator.kube.rest import RawObject

logger = logging.getLogger(__name__)

LIST_SECONDS: Final = 10.0
"""For each page."""


class Source(Protocol):
    """The part of `Api` that is needed here."""

    async def list_all(
        self, path: str, /, *, seconds: float, parameters: Mapping[str, str] | None = None
    ) -> tuple[list[RawObject], str]: ...

    def watch(
        self, path: str, /, *, since: str, parameters: Mapping[str, str] | None = None
    ) -> AsyncIterator[RawObject]: ...


class Copy(Protocol):
    """What is told about the objects of the kind."""

    def replace(self, objects: Sequence[RawObject]) -> None:
        """These are all objects."""

    def put(self, raw: RawObject) -> None:
        """This object is new or has changed."""

    def drop(self, raw: RawObject) -> None:
        """This object is gone."""


class Reflector:
    """One kind, one copy. `run` never ends by itself."""

    def __init__(
        self,
        source: Source,
        path: str,
        copy: Copy,
        *,
        parameters: Mapping[str, str] | None = None,
        retry_seconds: float = 1.0,
    ) -> None:
        self._source = source
        self._path = path
        self._copy = copy
        self._parameters = parameters
        self._retry_seconds = retry_seconds
        self._trouble: str | None = None
        self.listed = False
        """Whether the copy was complete at least once."""
        self.current = False
        """Whether the copy follows the server now; false from a break until the next list."""

    async def run(self) -> None:
        while True:
            try:
                version = await self._list()
                while True:
                    version = await self._follow(version)
                    # A server that ends each watch at once must not be asked in a tight loop.
                    await asyncio.sleep(self._retry_seconds / 10)
            except ApiError as error:
                self._say_trouble(error)
                # The history is gone: list again. That needs no patience.
                if not isinstance(error, Gone):
                    await asyncio.sleep(self._retry_seconds)

    async def _list(self) -> str:
        objects, version = await self._source.list_all(
            self._path, seconds=LIST_SECONDS, parameters=self._parameters
        )
        self._copy.replace(objects)
        self.listed = self.current = True
        self._say_well()
        return version

    async def _follow(self, version: str) -> str:
        """Follow one watch until the server ends it; returns where the next one goes on."""
        async for event in self._source.watch(
            self._path, since=version, parameters=self._parameters
        ):
            raw = event["object"]
            if event["type"] == "DELETED":
                self._copy.drop(raw)
            elif event["type"] in ("ADDED", "MODIFIED"):
                self._copy.put(raw)
            version = raw["metadata"]["resourceVersion"]
        return version

    def _say_trouble(self, error: ApiError) -> None:
        self.current = False
        # The same trouble every second is one line, not a thousand.
        if str(error) != self._trouble and not isinstance(error, Gone):
            logger.warning("%s can not be followed, it is tried again: %s", self._path, error)
            self._trouble = str(error)

    def _say_well(self) -> None:
        if self._trouble is not None:
            logger.info("%s is followed again", self._path)
            self._trouble = None

"""A thin client of the API server: get, list in pages, watch, and one kind of patch.

The webhook process has to stay small and quick, and the full client library would cost it 20 MiB
and a copy of every object in classes of its own. Objects are plain dicts here.
"""

import json
import time
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

from gpumem_operator.kube.connection import Connection
from gpumem_operator.kube.errors import ApiError, object_in, of_status, refused

PAGE_SIZE: Final = 500
_FIELD_MANAGER: Final = "gpumem-webhook"
_TOKEN_SECONDS: Final = 60.0
"""A ServiceAccount's token is replaced long before it ends, so a minute of age does no harm."""
_WATCH_SECONDS: Final = 60
"""The server ends a watch after so long, and the next one goes on from there. Bookmarks are no sign
of life: on a quiet kind they were seen to stay away for minutes."""
_SILENCE_SECONDS: Final = 75.0
"""A watch that is silent beyond its end is dead."""

RawObject = Mapping[str, Any]


def open_session(connection: Connection, *, most_connections: int) -> aiohttp.ClientSession:
    """Connections to the server alone, without credentials in headers; 0 is any number of them."""
    connector = aiohttp.TCPConnector(ssl=connection.tls_context(), limit=most_connections)
    return aiohttp.ClientSession(connector=connector)


class Api:
    """One API server, with a pool of connections; an async context manager."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._token: str | None = None
        self._token_read = float("-inf")
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = open_session(self._connection, most_connections=64)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(
        self, path: str, *, seconds: float, parameters: Mapping[str, str] | None = None
    ) -> RawObject:
        """The JSON at `path`. Raises ApiError after `seconds` at the latest."""
        return await self._json("GET", path, seconds=seconds, parameters=parameters or {})

    async def merge(self, path: str, body: Mapping[str, Any], *, seconds: float) -> RawObject:
        """Merge patch; what `body` does not mention stays. Raises ApiError, Conflict among them."""
        parameters = {"fieldManager": _FIELD_MANAGER}
        patch = json.dumps(body).encode()
        return await self._json("PATCH", path, seconds=seconds, parameters=parameters, patch=patch)

    async def _json(
        self,
        method: str,
        path: str,
        *,
        seconds: float,
        parameters: Mapping[str, str],
        patch: bytes | None = None,
    ) -> RawObject:
        what, timeout = f"{method} {path}", aiohttp.ClientTimeout(total=seconds)
        try:
            async with self._request(
                path, parameters, timeout, method=method, patch=patch
            ) as response:
                await _raise_for_status(what, response)
                return object_in(what, await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiError(what, _text(error)) from error

    async def list_all(
        self,
        path: str,
        *,
        seconds: float,
        parameters: Mapping[str, str] | None = None,
    ) -> tuple[list[RawObject], str]:
        """All items at `path`, and the resourceVersion of the list; `seconds` for each page.

        Raises ApiError, and Gone where the list changed for so long that it must start again.
        """
        items: list[RawObject] = []
        query = {**(parameters or {}), "limit": str(PAGE_SIZE)}
        while True:
            page = await self.get(path, seconds=seconds, parameters=query)
            items += page.get("items") or ()
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                return items, metadata.get("resourceVersion") or ""
            query["continue"] = metadata["continue"]

    async def watch(
        self, path: str, *, since: str, parameters: Mapping[str, str] | None = None
    ) -> AsyncIterator[RawObject]:
        """Events after resourceVersion `since`, bookmarks among them, until the server ends it.

        Raises ApiError, and Gone where `since` is too old.
        """
        query = {
            **(parameters or {}),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": since,
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        what = f"watch {path}"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=_SILENCE_SECONDS)
        try:
            async with self._request(path, query, timeout) as response:
                await _raise_for_status(what, response)
                async for line in _lines(response.content):
                    event = object_in(what, line)
                    if event["type"] == "ERROR":
                        status = event["object"]
                        raise of_status(what, {"message": "", **status}, status.get("code") or 0)
                    yield event
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiError(what, _text(error)) from error

    def _request(
        self,
        path: str,
        parameters: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,
        *,
        method: str = "GET",
        patch: bytes | None = None,
    ) -> Any:
        if self._session is None:
            raise RuntimeError("Api is used outside of its context")
        headers = self._headers()
        if patch is not None:
            headers["Content-Type"] = "application/merge-patch+json"
        return self._session.request(
            method,
            self._connection.server + path,
            params=parameters,
            timeout=timeout,
            headers=headers,
            data=patch,
        )

    def _headers(self) -> dict[str, str]:
        now = time.monotonic()
        if now - self._token_read > _TOKEN_SECONDS:
            self._token = self._connection.bearer()
            self._token_read = now
        headers = {"Accept": "application/json", "User-Agent": "gpumem-operator"}
        return headers | {"Authorization": f"Bearer {self._token}"} if self._token else headers


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__


async def _raise_for_status(what: str, response: aiohttp.ClientResponse) -> None:
    if response.status >= 400:
        raise refused(what, await response.read(), response.status)


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    # aiohttp's own line reader refuses lines above its buffer, and objects may have megabytes.
    rest = bytearray()
    async for chunk in content.iter_any():
        rest += chunk
        if b"\n" in chunk:
            *lines, tail = bytes(rest).split(b"\n")
            rest = bytearray(tail)
            for line in lines:
                if line:
                    yield line

"""Reading all objects of a kind, page by page, as they were at one moment."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, Protocol

from gpumem_operator.kube.api import JSON, METADATA_OF_LIST, Object, Query
from gpumem_operator.kube.errors import Gone
from gpumem_operator.kube.resources import Resource

PAGE_SIZE: Final = 500
_RESTARTS: Final = 3
"""How often a list begins anew because the API server no longer knew where it had been."""


class Reader(Protocol):
    """The part of the API that a list needs."""

    async def get(self, path: str, *, query: Query | None = None, accept: str = JSON) -> Object: ...


@dataclass(frozen=True)
class Page:
    """Some of the objects. A page that `restarts` the list makes all earlier pages void."""

    items: list[Object]
    version: str
    """resourceVersion of the whole list: the same on every page."""
    restarts: bool


async def pages(
    reader: Reader, resource: Resource, *, labels: str = "", metadata_only: bool = False
) -> AsyncIterator[Page]:
    """All objects of a kind in the whole cluster; `labels` is a label selector.

    With `metadata_only` they come without spec and status, which a list of pods mostly consists of.

    All pages show the same moment. Where the API server forgot that moment between two pages (410),
    the list begins anew. Raises ApiError, and Gone after three new beginnings.
    """
    accept = METADATA_OF_LIST if metadata_only else JSON
    query = {"limit": str(PAGE_SIZE)} | ({"labelSelector": labels} if labels else {})
    restarts_left = _RESTARTS
    token = ""
    first = True
    while first or token:
        try:
            answer = await reader.get(
                resource.path(),
                query=query | ({"continue": token} if token else {}),
                accept=accept,
            )
        except Gone:
            if not restarts_left or not token:
                raise
            restarts_left -= 1
            token, first = "", True
            continue
        metadata = answer.get("metadata") or {}
        yield Page(answer.get("items") or [], metadata.get("resourceVersion") or "", first)
        token, first = metadata.get("continue") or "", False


async def everything(
    reader: Reader, resource: Resource, *, labels: str = ""
) -> tuple[list[Object], str]:
    """All objects of a kind, and the resourceVersion at which they were read."""
    items: list[Object] = []
    version = ""
    async for page in pages(reader, resource, labels=labels):
        if page.restarts:
            items.clear()
        items += page.items
        version = page.version
    return items, version

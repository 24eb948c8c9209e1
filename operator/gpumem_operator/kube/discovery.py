"""Which kinds the API server knows, and where their scale subresource is."""

import time
from collections.abc import Callable
from typing import Any, Final

from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import NotFound
from gpumem_operator.kube.resources import Resource

_REMEMBERED_SECONDS: Final = 300.0


class NotScalable(Exception):
    """The kind is not known, is in no namespace, or has no scale; the text says which."""


class Discovery:
    """Answers of the API server, each asked for at most every few minutes."""

    def __init__(self, api: Api, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._monotonic = monotonic
        self._known: dict[str, tuple[float, list[Any]]] = {}

    async def scalable(self, api_version: str, kind: str) -> Resource:
        """The resource of a kind that has a scale. Raises NotScalable and ApiError."""
        group, _, version = api_version.rpartition("/")
        entries = await self._entries(api_version, Resource(group, version, "").path().rstrip("/"))
        plural = next(
            (
                str(one["name"])
                for one in entries
                if one.get("kind") == kind and "/" not in one["name"] and one.get("namespaced")
            ),
            None,
        )
        if plural is None:
            raise NotScalable(
                f"the API server knows no kind {kind} in namespaces, in {api_version}: look at"
                " `kubectl api-resources`"
            )
        if not any(one["name"] == f"{plural}/scale" for one in entries):
            raise NotScalable(f"{kind} in {api_version} has no scale subresource")
        return Resource(group, version, plural)

    async def _entries(self, api_version: str, path: str) -> list[Any]:
        asked, entries = self._known.get(api_version, (float("-inf"), []))
        now = self._monotonic()
        if now - asked < _REMEMBERED_SECONDS:
            return entries
        try:
            entries = (await self._api.get(path)).get("resources") or []
        except NotFound:
            # Its definition may come at any time: nothing to remember.
            return []
        self._known[api_version] = (now, entries)
        return entries

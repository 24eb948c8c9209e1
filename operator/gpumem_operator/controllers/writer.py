"""Writes of the leader: checked against the lease first, and over before another may lead."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from gpumem_operator.api.printable import printable
from gpumem_operator.kube.api import REQUEST_SECONDS, Api, Object, Patch
from gpumem_operator.kube.resources import EVENTS

FIELD_MANAGER: Final = "gpumem-controller"


class Leader(Protocol):
    """Whether this process may write; see kube.lease.Leadership."""

    @property
    def write_seconds(self) -> float: ...
    def check(self) -> None: ...


class Writer:
    """The API for whoever leads. Every method raises LeadershipLost where somebody else does."""

    def __init__(self, api: Api, leader: Leader) -> None:
        self.api = api
        self._leader = leader

    async def merge(self, path: str, body: Object) -> Object:
        """Merge patch: what `body` does not mention stays."""
        return await self._patch(path, body, Patch.MERGE)

    async def store_status(self, path: str, version: int, status: Mapping[str, Any]) -> Object:
        """Fields of a status, by the path of the subresource and the version that was read.

        With the version, because a list is replaced as a whole. Raises Conflict.
        """
        body = {"metadata": {"resourceVersion": str(version)}, "status": dict(status)}
        return await self.merge(path, body)

    async def edit(self, path: str, operations: list[Object]) -> Object:
        """JSON patch."""
        return await self._patch(path, operations, Patch.JSON)

    async def apply(self, path: str, body: Object, *, manager: str) -> Object:
        """Server-side apply: `body` is all that `manager` owns of the object, by force."""
        return await self.api.patch(
            path,
            body,
            kind=Patch.APPLY,
            query={"fieldManager": manager, "force": "true"},
            seconds=self._time(),
        )

    async def replace(self, path: str, body: Object) -> Object:
        return await self.api.replace(path, body, seconds=self._time())

    async def create(self, path: str, body: Object) -> Object:
        return await self.api.create(path, body, seconds=self._time())

    async def delete(self, path: str, *, uid: str, grace_seconds: int | None = None) -> Object:
        """Delete this very object and no other of its name. None: it gets the time it asks for."""
        body: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        return await self.api.request("DELETE", path, body=body, seconds=self._time())

    async def warn(self, about: Object, *, reason: str, message: str, now: str) -> None:
        """Post a Warning event on an object given by kind, name, uid and, if any, namespace."""
        await self._post_event(about, "Warning", reason=reason, message=message, now=now)

    async def note(self, about: Object, *, reason: str, message: str, now: str) -> None:
        """Post a Normal event on an object, given as for `warn`."""
        await self._post_event(about, "Normal", reason=reason, message=message, now=now)

    async def _post_event(
        self, about: Object, kind: str, *, reason: str, message: str, now: str
    ) -> None:
        namespace = about.get("namespace") or "default"
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{about['name'][:200]}.", "namespace": namespace},
            "involvedObject": about,
            "type": kind,
            "reason": reason,
            "message": printable(message[:1024]),
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "source": {"component": FIELD_MANAGER},
        }
        await self.create(EVENTS.path(namespace=namespace), event)

    async def _patch(self, path: str, body: Object | list[Object], kind: Patch) -> Object:
        query = {"fieldManager": FIELD_MANAGER}
        return await self.api.patch(path, body, kind=kind, query=query, seconds=self._time())

    def _time(self) -> float:
        self._leader.check()
        return min(REQUEST_SECONDS, self._leader.write_seconds)

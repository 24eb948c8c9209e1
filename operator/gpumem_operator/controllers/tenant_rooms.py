"""What tenants can still pay for, while decisions about several workloads give it away."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from gpumem_operator.api.quantity import add_bytes
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.reports.snapshot import PodView, Snapshot
from gpumem_operator.scaling.facts import TenantRoom


class TenantRooms:
    """Of one moment. Replicas that were asked for and have no pod yet have their room pledged, so
    that two workloads are never given the same."""

    def __init__(self, cache: Cache, snapshot: Snapshot) -> None:
        self._cache = cache
        self._views = snapshot.pods
        self._taken = _taken(snapshot.pods.values())
        self._pledged: dict[Hashable, Mapping[str, int]] = {}

    def pledge(
        self, workload: Hashable, rooms: Iterable[TenantRoom], *, pods: int, replicas: int
    ) -> None:
        """Keep room for the replicas of a workload that has only so many pods."""
        missing = max(replicas - pods, 0)
        self._pledged[workload] = {room.tenant: missing * (room.pod_bytes or 0) for room in rooms}

    def of(self, workload: Hashable, namespace: str, uids: Iterable[str]) -> tuple[TenantRoom, ...]:
        """Rooms for one workload, given its pods. Tenants that only warn let every pod in, and
        bound nothing."""
        views = [self._views[uid] for uid in uids if uid in self._views]
        rooms = []
        for record in self._cache.memberships.by_namespace.get(namespace, ()):
            row = self._cache.tenants.get(("", record.name))
            if row is None or record.spec is None or record.spec.quota.on_exceeded == "Warn":
                continue
            taken = self._taken.get(record.name, 0)
            amounts = [_amount(view, record.name) for view in views]
            known = [amount for amount in amounts if amount is not None]
            certain = taken is not None and len(known) == len(amounts)
            kept = self._reserved(row.value.status) + self._pledged_to_others(workload, record.name)
            rooms.append(
                TenantRoom(
                    tenant=record.name,
                    room_bytes=record.spec.quota.limit_bytes - (taken or 0) - kept,
                    pod_bytes=max(known, default=None) if certain else None,
                )
            )
        return tuple(rooms)

    def _reserved(self, status: Mapping[str, Any]) -> int:
        """Room kept for pods that have not been seen yet: the others are charged or wait."""
        return add_bytes(
            int(one.get("bytes") or 0)
            for one in status.get("reservations") or ()
            if one.get("podUID") not in self._views
        )

    def _pledged_to_others(self, workload: Hashable, tenant: str) -> int:
        return add_bytes(
            pledge.get(tenant, 0) for other, pledge in self._pledged.items() if other != workload
        )


def _taken(views: Iterable[PodView]) -> Mapping[str, int | None]:
    """By tenant, what its pods are charged, and will be once they are let in; None where that of
    one is not known."""
    taken: dict[str, int | None] = {}
    for view in views:
        for tenant in view.charges.keys() | view.queued.keys():
            amount, before = _amount(view, tenant), taken.get(tenant, 0)
            unknown = amount is None or before is None
            taken[tenant] = None if unknown else add_bytes((before or 0, amount or 0))
    return taken


def _amount(view: PodView, tenant: str) -> int | None:
    return view.queued[tenant] if tenant in view.queued else view.charges.get(tenant)

"""What a pod waits for, from the statuses of the tenants of its namespace."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpumem_operator.api.quantity import add_bytes, show_bytes
from gpumem_operator.api.records import TenantRecord
from gpumem_operator.ledger.book import Obstacle, Reason
from gpumem_operator.ledger.charged_pod import stored_top_pods
from gpumem_operator.ledger.obstacle_words import cause, held_back, largest_holders
from gpumem_operator.ledger.queue_status import MOST_QUEUED, NEXT_STEP
from gpumem_operator.ledger.reservation import stored_reservations
from gpumem_operator.ledger.room import Room

Row = Mapping[str, Any]

FOREIGN_GATE: Final = (
    "waits: at the gate gpumemory.dev/quota, which nobody opens. The operator gives it to pods that"
    " ask for a GPU and to no others: whoever wrote this pod gave it to it"
)
WITHOUT_GATE: Final = (
    "delete the pod and create it again without gpumemory.dev/quota in its spec.schedulingGates"
)
_NOBODY_LOOKED: Final = (
    "wait for some seconds; if it stays so, the platform team looks whether a controller of the"
    " operator runs"
)
_REASONS: Final = frozenset(Reason)


def waiting_lines(
    pod: Row,
    tenants: tuple[TenantRecord, ...],
    statuses: Row,
    *,
    undeclared: Sequence[str] = (),
) -> Iterator[str]:
    """Lines about a pod that carries our gate; `statuses` are raw, by the name of the tenant.

    `undeclared` are its containers whose GPUs count whole because they declare nothing.
    """
    yield "  waits: for room in its tenant's quota (gate gpumemory.dev/quota); not charged yet"
    for tenant in tenants:
        if tenant.spec is None or tenant.spec.quota.on_exceeded == "Warn":
            continue
        status, limit = statuses.get(tenant.name) or {}, tenant.spec.quota.limit_bytes
        room = _room_of(limit, status)
        yield f"    tenant {tenant.name}: {_place(pod, tenant.name, room, status, undeclared)}"
        yield f"    tenant {tenant.name}: {_left(limit, room, status)}"


def waiting_step(
    pod: Row,
    tenants: tuple[TenantRecord, ...] | None,
    statuses: Row,
    events: tuple[Row, ...],
) -> str:
    """What helps a pod that carries our gate, by the reason that the queue has.

    `tenants` are those of its namespace, None where they may not be read: the latest of its
    `events` has the same reason.
    """
    for tenant in tenants or ():
        if tenant.spec is None:
            return NEXT_STEP[Reason.UNREADABLE]
        _, row = _in_queue(pod, statuses.get(tenant.name) or {})
        if row is not None and row.get("reason") in _REASONS:
            return NEXT_STEP[Reason(row["reason"])]
    told = [one["reason"] for one in events if one.get("reason") in _REASONS]
    return NEXT_STEP[Reason(told[-1])] if told else _NOBODY_LOOKED


def _in_queue(pod: Row, status: Row) -> tuple[int, Row | None]:
    """Its place from 1 and its row; 0 and None where the status does not name it."""
    mine = (pod["metadata"]["namespace"], pod["metadata"]["name"])
    for place, row in enumerate(status.get("queue") or (), start=1):
        if (row.get("namespace"), row.get("name")) == mine:
            return place, row
    return 0, None


def _place(pod: Row, tenant: str, room: Room | None, status: Row, undeclared: Sequence[str]) -> str:
    place, row = _in_queue(pod, status)
    if row is not None:
        reason = row.get("reason") or ""
        words = _cause(row, tenant, room, undeclared) if reason in _REASONS else "not known"
        return f"place {place} in the queue, {reason}: {words}"
    if any(one.pod_uid == pod["metadata"]["uid"] for one in stored_reservations(status)):
        return "room is reserved for it; its gate will be opened now"
    if len(status.get("queue") or ()) >= MOST_QUEUED:
        return f"behind the first {MOST_QUEUED} of the queue"
    return "not in the queue yet: the leader has not looked at it (does a controller run?)"


def _cause(row: Row, tenant: str, room: Room | None, undeclared: Sequence[str]) -> str:
    """In the words of its Event, or that this tenant is not the one that it waits for."""
    reason, group = Reason(row["reason"]), row.get("group") or {}
    asked = int(group.get("bytes") or row.get("bytes") or 0)
    if room is not None and reason is Reason.NEVER_FITS and asked <= room.limit_bytes:
        return f"it asks for {show_bytes(asked)}; the whole quota of another of its tenants is less"
    if room is not None and reason is Reason.NO_ROOM and asked <= room.left_bytes:
        return (
            f"it asks for {show_bytes(asked)}, which is there; another of its tenants has no room"
        )
    return cause(
        Obstacle(reason, tenant, asked, room, str(row.get("heldFor") or "")),
        pods=int(group.get("pods") or 1),
        missing=int(group.get("missing") or 0),
        undeclared=undeclared,
    )


def _room_of(limit_bytes: int, status: Row) -> Room | None:
    """None where what is charged is not counted yet."""
    charged = status.get("chargedBytes")
    if charged is None:
        return None
    reserved = add_bytes(one.amount_bytes for one in stored_reservations(status))
    return Room(limit_bytes, charged, reserved)


def _left(limit_bytes: int, room: Room | None, status: Row) -> str:
    if room is None:
        return f"what is charged of {show_bytes(limit_bytes)} is not counted yet"
    held = held_back(room.left_bytes, int(status.get("heldBytes") or 0))
    return ". ".join([f"{room.in_words()}{held}", *largest_holders(stored_top_pods(status))])

"""What a pod waits for, from the statuses of the tenants of its namespace."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpumem_operator.api.quantity import add_bytes, show_bytes
from gpumem_operator.api.records import TenantRecord
from gpumem_operator.ledger.book import Reason
from gpumem_operator.ledger.charged_pod import stored_top_pods
from gpumem_operator.ledger.obstacle_words import largest_holders
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
_IN_WORDS: Final[Mapping[str, str]] = {
    Reason.NO_ROOM: "there is not enough room for it",
    Reason.HELD: "the room is held for a pod that has waited longer",
    Reason.INCOMPLETE: "pods of its group are missing, and a group goes on whole",
    Reason.NEVER_FITS: "it asks for more than the whole quota",
    Reason.FULL: "too many pods are on their way at once; for some seconds",
}


def waiting_lines(pod: Row, tenants: tuple[TenantRecord, ...], statuses: Row) -> Iterator[str]:
    """Lines about a pod that carries our gate; `statuses` are raw, by the name of the tenant."""
    yield "  waits: for room in its tenant's quota (gate gpumemory.dev/quota); not charged yet"
    for tenant in tenants:
        if tenant.spec is None or tenant.spec.quota.on_exceeded == "Warn":
            continue
        status = statuses.get(tenant.name) or {}
        yield f"    tenant {tenant.name}: {_place(pod, tenant.spec.quota.limit_bytes, status)}"
        yield f"    tenant {tenant.name}: {_room(tenant.spec.quota.limit_bytes, status)}"


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


def _place(pod: Row, limit_bytes: int, status: Row) -> str:
    place, row = _in_queue(pod, status)
    if row is not None:
        reason = row.get("reason") or ""
        words = _IN_WORDS.get(reason, "not known")
        if reason == Reason.NO_ROOM and (missing := _missing(row, limit_bytes, status)):
            words = missing
        if reason == Reason.HELD and (holder := row.get("heldFor")):
            words = f"the room is held for {holder}, which has waited longer"
        return f"place {place} in the queue, {reason}: {words}"
    if any(one.pod_uid == pod["metadata"]["uid"] for one in stored_reservations(status)):
        return "room is reserved for it; its gate will be opened now"
    if len(status.get("queue") or ()) >= MOST_QUEUED:
        return f"behind the first {MOST_QUEUED} of the queue"
    return "not in the queue yet: the leader has not looked at it (does a controller run?)"


def _missing(row: Row, limit_bytes: int, status: Row) -> str:
    """How much room this tenant lacks, or that it is not the one that lacks it; empty where that
    can not be told."""
    asked, charged = row.get("bytes"), status.get("chargedBytes")
    if asked is None or charged is None:
        return ""
    left = _left(limit_bytes, charged, status).left_bytes
    if asked <= left:
        return (
            f"it asks for {show_bytes(asked)}, which is there; its group as a whole, or another of"
            " its tenants, has no room"
        )
    short = show_bytes(asked - max(left, 0))
    return f"there is not enough room for it: it asks for {show_bytes(asked)}, {short} too little"


def _left(limit_bytes: int, charged: int, status: Row) -> Room:
    reserved = add_bytes(one.amount_bytes for one in stored_reservations(status))
    return Room(limit_bytes, charged, reserved)


def _room(limit_bytes: int, status: Row) -> str:
    charged = status.get("chargedBytes")
    if charged is None:
        return f"what is charged of {show_bytes(limit_bytes)} is not counted yet"
    sentences = [_left(limit_bytes, charged, status).in_words()]
    sentences += largest_holders(stored_top_pods(status))
    return ". ".join(sentences)

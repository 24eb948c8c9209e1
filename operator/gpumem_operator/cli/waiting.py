"""What a pod waits for, from the statuses of the tenants of its namespace."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpumem_operator.api.quantity import add_bytes, show_bytes
from gpumem_operator.api.records import TenantRecord
from gpumem_operator.ledger.book import Reason
from gpumem_operator.ledger.charged_pod import stored_top_pods
from gpumem_operator.ledger.obstacle_words import largest_holders
from gpumem_operator.ledger.queue_status import MOST_QUEUED
from gpumem_operator.ledger.reservation import stored_reservations
from gpumem_operator.ledger.room import Room

Row = Mapping[str, Any]

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


def _place(pod: Row, limit_bytes: int, status: Row) -> str:
    queue = status.get("queue") or []
    metadata = pod["metadata"]
    for place, row in enumerate(queue, start=1):
        if (row.get("namespace"), row.get("name")) == (metadata["namespace"], metadata["name"]):
            reason = row.get("reason") or ""
            words = _IN_WORDS.get(reason, "not known")
            if reason == Reason.NO_ROOM and (missing := _missing(row, limit_bytes, status)):
                words = missing
            return f"place {place} in the queue, {reason}: {words}"
    if any(one.pod_uid == metadata["uid"] for one in stored_reservations(status)):
        return "room is reserved for it; its gate will be opened now"
    if len(queue) >= MOST_QUEUED:
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

"""Room that is kept for one pod until its tenant is charged for it.

    (none) --reserve--> standing --convert--> charged
                           |
                           +--give back--> (none)   another tenant has no room for the gated pod
                           +--give way---> (none)   the quota was lowered
                           +--lapse------> (none)   there is no such pod

Reserve: written into the tenant's status, with its resourceVersion, before the pod may go on.
Convert: the leader sees the pod without our gate; charge and reservation change in one write.
Give back: by the leader where another tenant has no room for the gated pod; by a webhook where the
pod is refused elsewhere, or nobody waits for the answer any more.
Give way: the quota was lowered, and more is charged and reserved than it: the last in order of the
gated pods wait again.
Lapse: a read by name does not find the pod's uid, at once where a leader has seen the pod before,
else once none has seen it for LAPSE_SECONDS: it may still be on its way from a webhook.
Only the leader opens gates, and only of pods that have all their reservations in stored statuses.
Before one that lacks another is given back, the pod is fenced: an earlier leader that was about to
open its gate can not do so any more, because it read the pod under another resourceVersion.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpumem_operator import names

MOST_RESERVATIONS: Final = names.MOST_IN_A_GROUP
"""In the status of one tenant, whose size is bounded."""
LAPSE_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Reservation:
    """Room kept for one pod in one tenant."""

    pod_uid: str
    namespace: str
    name: str
    amount_bytes: int
    seen: bool = False
    """Whether a leader had seen the pod when it was kept."""


def stored_reservations(status: Mapping[str, Any]) -> tuple[Reservation, ...]:
    """The reservations of a raw status."""
    return tuple(
        Reservation(
            str(row["podUID"]),
            str(row.get("namespace") or ""),
            str(row.get("name") or ""),
            int(row.get("bytes") or 0),
            seen=row.get("podState") == "Seen",
        )
        for row in status.get("reservations") or ()
    )


def reservation_rows(reservations: Iterable[Reservation]) -> list[dict[str, Any]]:
    """As they stand in a raw status."""
    return [
        {
            "podUID": one.pod_uid,
            "namespace": one.namespace,
            "name": one.name,
            "bytes": one.amount_bytes,
            "podState": "Seen" if one.seen else "Expected",
        }
        for one in reservations
    ]


def standing(
    stored: Iterable[Reservation], *, opened: Container[str], gone: Container[str]
) -> tuple[Reservation, ...]:
    """Those that still keep room.

    `opened` are the uids of pods that are seen without our gate, finished ones included: they are
    charged or are over. `gone` are uids that a read by name did not find.
    """
    return tuple(one for one in stored if one.pod_uid not in opened and one.pod_uid not in gone)


def unseen_since(
    before: Mapping[str, float], unseen: Iterable[str], now: float
) -> dict[str, float]:
    """Since when the pods of reservations have not been seen, by uid, in seconds of one clock."""
    return {uid: before.get(uid, now) for uid in unseen}


def overdue(
    unseen: Iterable[Reservation], since: Mapping[str, float], now: float
) -> list[Reservation]:
    """Those whose pods have to be looked for by name now."""
    return [one for one in unseen if one.seen or now - since[one.pod_uid] >= LAPSE_SECONDS]

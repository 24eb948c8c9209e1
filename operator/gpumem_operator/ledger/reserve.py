"""Room for pods that can not wait: what a webhook decides from one tenant as it is stored.

A webhook sees no pods and leads nothing. It knows what the leader wrote (charge and reservations)
and what other webhooks added since, and it writes with the resourceVersion of what it read: whoever
decided by something older is refused by the API server. What it adds keeps room from then on, by
the pod's uid; only the leader turns it into a charge, or finds that it lapsed.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpumem_operator.api.records import tenant_record
from gpumem_operator.api.tenant import Quota
from gpumem_operator.ledger.book import Account, Book, Obstacle, Reason
from gpumem_operator.ledger.charged_pod import ChargedPod, stored_top_pods
from gpumem_operator.ledger.reservation import Reservation, stored_reservations


@dataclass(frozen=True)
class Asking:
    """A pod that is being created and goes on at once or not at all."""

    uid: str
    namespace: str
    name: str
    charge: Callable[[Quota], int]
    """Bytes that a tenant with this quota is charged for it."""


@dataclass(frozen=True)
class Page:
    """One tenant as it was read."""

    tenant: str
    version: str
    quota: Quota | None
    """None where the spec can not be read."""
    charged_bytes: int | None
    """None where no leader has counted yet what this spec means."""
    reservations: tuple[Reservation, ...] = ()
    held_bytes: int = 0
    """Of what is left, kept for pods that have waited in its queue for long."""
    holders: tuple[ChargedPod, ...] = ()
    """The pods that are charged most, the largest first."""


@dataclass(frozen=True)
class Answers:
    """What to write, and whom to refuse. Who is not refused goes on once it is stored."""

    reservations: tuple[Reservation, ...]
    """What the status has to hold."""
    refused: Mapping[str, Obstacle] = field(default_factory=dict)
    """By the uid of the pod."""


def page_of(raw: Mapping[str, Any]) -> Page:
    """Reads a raw tenant."""
    record = tenant_record(raw)
    status = raw.get("status") or {}
    # The leader raises the epoch before it counts, and says of which spec it counted.
    counted = (
        status.get("epoch") is not None and status.get("observedGeneration") == record.generation
    )
    return Page(
        tenant=record.name,
        version=str(raw["metadata"].get("resourceVersion") or ""),
        quota=record.spec.quota if record.spec else None,
        charged_bytes=status.get("chargedBytes") if counted else None,
        reservations=stored_reservations(status),
        held_bytes=int(status.get("heldBytes") or 0),
        holders=stored_top_pods(status),
    )


def answer(
    page: Page, asking: Sequence[Asking], *, returned: Container[str] = frozenset()
) -> Answers:
    """Who gets room, in the order in which they came; asked again, it answers the same.

    `returned` are uids of pods that were refused after their room was reserved here: they will
    never be. A tenant that only warns gives room to everybody and keeps none.
    """
    kept = tuple(one for one in page.reservations if one.pod_uid not in returned)
    if page.quota is not None and page.quota.on_exceeded == "Warn":
        return Answers(kept)
    if page.quota is None or page.charged_bytes is None:
        reason = Reason.UNREADABLE if page.quota is None else Reason.NOT_COUNTED
        return Answers(kept, {pod.uid: Obstacle(reason, page.tenant) for pod in asking})
    account = Account(page.tenant, page.quota.limit_bytes, page.charged_bytes)
    book = Book(account, kept, held_bytes=page.held_bytes)
    provided = {one.pod_uid for one in kept}
    refused: dict[str, Obstacle] = {}
    for pod in asking:
        amount = pod.charge(page.quota)
        if pod.uid in provided or not amount:
            continue
        obstacle = book.obstacle(amount)
        if obstacle is None:
            book.reserve(Reservation(pod.uid, pod.namespace, pod.name, amount))
            provided.add(pod.uid)
        else:
            refused[pod.uid] = obstacle
    return Answers(tuple(book.reservations), refused)

"""What a tenant's status says of its queue, and what people read about a place in it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpumem_operator.api.quantity import LARGEST_BYTES, add_bytes, show_bytes
from gpumem_operator.ledger.book import Account, Obstacle, Reason
from gpumem_operator.ledger.charged_pod import ChargedPod
from gpumem_operator.ledger.groups import WaitingPod
from gpumem_operator.ledger.obstacle_words import (
    cause,
    counted_whole,
    largest_holders,
    next_step,
)
from gpumem_operator.ledger.queue import Turn, Waiting
from gpumem_operator.ledger.reservation import reservation_rows

MOST_QUEUED: Final = 50


@dataclass(frozen=True)
class Place:
    """One waiting pod, as its tenant's queue shows it."""

    pod: WaitingPod
    waiting: Waiting
    number: int
    """From 1, among `length` pods that wait for room in this tenant."""
    length: int


def places(turn: Turn, tenant: str) -> list[Place]:
    """The tenant's queue in order."""
    found = turn.queues.get(tenant, ())
    return [Place(pod, one, number, len(found)) for number, (pod, one) in enumerate(found, start=1)]


def queue_status(account: Account, turn: Turn, *, epoch: int, generation: int) -> dict[str, Any]:
    """The fields of the status that are written together; charge and reservations among them.

    `generation` is that of the spec by which the account was made.
    """
    queue = places(turn, account.name)
    return {
        "observedGeneration": generation,
        "epoch": epoch,
        "chargedBytes": account.charged_bytes,
        "reservations": reservation_rows(turn.reservations[account.name]),
        "heldBytes": min(turn.held[account.name], LARGEST_BYTES),
        "queuedBytes": add_bytes((one.pod.needs or {})[account.name] for one in queue),
        "queue": [_row(one, account.name) for one in queue[:MOST_QUEUED]],
    }


def _row(place: Place, tenant: str) -> dict[str, Any]:
    obstacle = place.waiting.obstacle
    row: dict[str, Any] = {
        "namespace": place.pod.namespace,
        "name": place.pod.name,
        "bytes": (place.pod.needs or {})[tenant],
        "reason": obstacle.reason.value,
    }
    if obstacle.holder:
        row["heldFor"] = obstacle.holder
    entry = place.waiting.entry
    if place.pod.group is not None and entry.needs is not None:
        row["group"] = {
            "pods": len(entry.pods),
            "missing": entry.missing,
            "bytes": min(entry.needs[tenant], LARGEST_BYTES),
        }
    return row


def explain_place(place: Place, tenant: str, holders: Sequence[ChargedPod]) -> str:
    """Why the pod waits and what helps; `holders` are charged pods, the largest first."""
    obstacle = place.waiting.obstacle
    sentences = [
        f"waits in place {place.number} of {place.length} for GPU memory of tenant {tenant}:"
        f" {_cause(place)}",
        *_holders(obstacle, holders),
        *counted_whole(place.pod.undeclared),
        *_rollout(place.pod),
        f"Next step: {next_step(NEXT_STEP, obstacle.reason, place.pod.undeclared)}",
    ]
    return ". ".join(sentences)


def explain_unreadable(pod: WaitingPod) -> str:
    """Of a pod of which cannot be told whose room it needs."""
    why, step = cause(Obstacle(Reason.UNREADABLE)), NEXT_STEP[Reason.UNREADABLE]
    return f"{pod.title} waits: {why}. Next step: {step} (kubectl get gmt)"


def _cause(place: Place) -> str:
    entry = place.waiting.entry
    return cause(
        place.waiting.obstacle,
        pods=len(entry.pods),
        missing=entry.missing,
        undeclared=place.pod.undeclared,
    )


def _holders(obstacle: Obstacle, holders: Sequence[ChargedPod]) -> Iterator[str]:
    if obstacle.reason is Reason.NO_ROOM:
        yield from largest_holders(holders)


def _rollout(pod: WaitingPod) -> Iterator[str]:
    if pod.older_revision is not None:
        held = pod.older_revision
        yield (
            f"Older pods of its own Deployment {held.deployment} hold"
            f" {show_bytes(held.amount_bytes)}, and a rollout with maxUnavailable 0 ends none of"
            " them before this one runs: with maxSurge 0 and maxUnavailable 1 it needs no more room"
        )


NEXT_STEP: Final[Mapping[Reason, str]] = {
    Reason.NO_ROOM: "wait, end a pod that holds room, or have the quota raised",
    Reason.HELD: "wait, or give the pod a higher PriorityClass",
    Reason.INCOMPLETE: "let its controller create the others: at once it has to have as many pods"
    " as gpumemory.dev/group-size says (a Job: spec.parallelism)",
    Reason.NEVER_FITS: "ask for less, or have the quota raised",
    Reason.FULL: "wait for some seconds",
    Reason.UNREADABLE: "the platform team corrects the tenant",
}

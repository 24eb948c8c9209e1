"""The refusal of a pod for which a tenant has no room, as its author reads it."""

from collections.abc import Mapping, Sequence
from typing import Final

from gpumem_operator.admission.verdict import Verdict, refusal
from gpumem_operator.api.violation import Violation
from gpumem_operator.ledger.book import Obstacle, Reason
from gpumem_operator.ledger.charged_pod import ChargedPod
from gpumem_operator.ledger.obstacle_words import (
    SO_MANY,
    asked_and_left,
    asks,
    counted_whole,
    largest_holders,
    next_step,
)

TRY_AGAIN: Final = 429
"""HTTP status where nothing speaks against the pod: the same request may pass in a moment."""


def refuse(
    title: str,
    obstacle: Obstacle,
    holders: Sequence[ChargedPod],
    *,
    undeclared: Sequence[str] = (),
) -> Verdict:
    """Requested, left, charged, reserved, the limit, who holds most, and what to do.

    `undeclared` are containers of the pod whose GPUs count whole because they declare nothing.
    """
    sentences = _sentences(obstacle, holders, undeclared)
    return refusal(
        title,
        [Violation(f"tenant {obstacle.tenant}", ". ".join(sentences))],
        next_step=f"next step: {next_step(_NEXT_STEP, obstacle.reason, undeclared)}",
        code=_CODES.get(obstacle.reason, 403),
    )


def refuse_late(title: str, cause: str) -> Verdict:
    """Where nobody knows in time whether there is room."""
    text = f"room for it could not be reserved in time: {cause}"
    return refusal(
        title, [Violation("quota", text)], next_step="next step: try again", code=TRY_AGAIN
    )


def _sentences(
    obstacle: Obstacle, holders: Sequence[ChargedPod], undeclared: Sequence[str]
) -> list[str]:
    if obstacle.reason is Reason.UNREADABLE:
        return ["it can not be read, so it is not known how much room there is"]
    if obstacle.reason is Reason.NOT_COUNTED:
        return ["what its pods are charged has not been counted since it was made or changed"]
    if obstacle.reason is Reason.FULL:
        return [SO_MANY]
    named = largest_holders(holders) if obstacle.reason is Reason.NO_ROOM else ()
    arithmetic = asked_and_left(f"the pod {asks(undeclared)}", obstacle)
    return [arithmetic, *named, *counted_whole(undeclared)]


_CODES: Final[Mapping[Reason, int]] = {
    Reason.UNREADABLE: 500,
    Reason.NOT_COUNTED: TRY_AGAIN,
    Reason.FULL: TRY_AGAIN,
}
_NEXT_STEP: Final[Mapping[Reason, str]] = {
    Reason.NO_ROOM: "try again when pods of the tenant have ended, end one, or have the"
    " quota raised; whoever may read tenants sees with kubectl gpumem tenants who holds it",
    Reason.HELD: "try again later; where the tenant queues, a pod without spec.nodeName waits by"
    " itself",
    Reason.NEVER_FITS: "ask for less, or have the quota raised",
    Reason.FULL: "try again in some seconds",
    Reason.NOT_COUNTED: "try again in some seconds; if it stays so, the platform team"
    " looks whether a controller of the operator runs",
    Reason.UNREADABLE: "the platform team corrects the tenant",
}

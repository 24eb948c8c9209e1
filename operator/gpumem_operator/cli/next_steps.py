"""What a person can do about a pod, from what is known of it: the most pressing first. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpumem_operator.api.gates import is_gated
from gpumem_operator.ledger.charge import has_finished
from gpumem_operator.reports.reasons import NO_PROCESS, REASONS

MOST: Final = 3
AGAIN: Final = "create the pod again, so that it goes through admission"

Row = Mapping[str, Any]


def next_steps(
    pod: Row, *, lacks_admission: bool, outdated: bool, usage: Row | None, events: tuple[Row, ...]
) -> list[str]:
    """At most MOST sentences without their full stop; none where nothing is to be done.

    `lacks_admission`: something decides for pods like it, and never saw this one. `usage` is the
    leader's row of it.
    """
    if has_finished(pod):
        return []
    found = [
        *([AGAIN] if lacks_admission else []),
        *_while_it_waits(pod, events),
        *_of_use(usage or {}),
        *(["create the pod again to give it the policy's new plan"] if outdated else []),
    ]
    return list(dict.fromkeys(found))[:MOST]


def _while_it_waits(pod: Row, events: tuple[Row, ...]) -> Iterator[str]:
    spec = pod.get("spec") or {}
    if is_gated(pod):
        yield "wait for room in the quota: kubectl gpumem tenants shows who takes it"
    elif not spec.get("nodeName") and any(e.get("reason") == "FailedScheduling" for e in events):
        yield "ask for less, or add a node that has what the scheduler's event says is missing"


def _of_use(usage: Row) -> Iterator[str]:
    """What would have each limit held, then what would make known what is not."""
    containers = usage.get("containers") or ()
    unheld = [one["enforcedReason"] for one in containers if one["enforcedBy"] == "None"]
    unread = [one.get("unknown") or one["enforcedReason"] for one in containers]
    elsewhere = [row.get("unknown") for row in usage.get("elsewhere") or ()]
    for reason in (*unheld, usage.get("enforcedReason"), *unread, *elsewhere):
        # One that runs no program on a GPU yet is as it should be.
        if reason in REASONS and reason != NO_PROCESS and REASONS[reason].step:
            yield REASONS[reason].step

"""What a person can do about a pod, from what is known of it: the most pressing first. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.admission.decider import Decider
from gpumem_operator.admission.minimum_enforcer import ways_out
from gpumem_operator.api.gates import is_gated
from gpumem_operator.api.pods import is_handled
from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.ledger.charge import has_finished
from gpumem_operator.ledger.node_enforcers import ENFORCER_LABELS
from gpumem_operator.reports.reasons import (
    NO_LIMIT,
    NO_PROCESS,
    OVER_LIMIT,
    REASONS,
    SAMPLER_STUCK,
    SILENT,
)

MOST: Final = 3
AGAIN: Final = "create the pod again, so that it goes through admission"

Row = Mapping[str, Any]


_AGENT: Final = (
    "its node's agent is what measures it: look whether DaemonSet <release>-agent has a pod there"
    " (chart value agent.enabled) and at its log, or set monitoring.mode to Sidecar and create the"
    " pod again"
)

_GOING: Final = (
    "wait until it is gone; where its node does not confirm that, kubectl delete pod NAME --force"
    " takes it out of the cluster, and out of its tenant's charge"
)


def next_steps(
    pod: Row,
    *,
    outdated: bool,
    usage: Row | None,
    events: tuple[Row, ...],
    decider: Decider | None,
    at_gate: str,
    unlabelled: str = "",
) -> list[str]:
    """At most MOST sentences without their full stop; none where nothing is to be done.

    `usage` is the leader's row of it, `decider` who decides about it today; one that decides and
    did not handle it never saw it. `at_gate` is what helps while it waits at our gate;
    `unlabelled` is a label that its node has to have and none has.
    """
    if has_finished(pod):
        return []
    if pod["metadata"].get("deletionTimestamp"):
        return [_GOING]
    found = [
        *([AGAIN] if decider is not None and not is_handled(pod) else []),
        *_while_it_waits(pod, events, at_gate, unlabelled=unlabelled),
        *_of_use(usage or {}, _of_this_pod(pod, decider)),
        *(["create the pod again to give it the policy's new plan"] if outdated else []),
    ]
    return list(dict.fromkeys(found))[:MOST]


def _while_it_waits(
    pod: Row, events: tuple[Row, ...], at_gate: str, *, unlabelled: str
) -> Iterator[str]:
    spec = pod.get("spec") or {}
    if is_gated(pod):
        yield at_gate
    elif not spec.get("nodeName") and unlabelled:
        needed = next(who for who, label in ENFORCER_LABELS.items() if label == unlabelled)
        yield f"{ways_out(needed)} and create the pod again"
    elif not spec.get("nodeName") and any(e.get("reason") == "FailedScheduling" for e in events):
        yield "ask for less, or add a node that has what the scheduler's event says is missing"


def _of_use(usage: Row, instead: Mapping[str, str]) -> Iterator[str]:
    """What would have each limit held, then what would make known what is not."""
    containers = usage.get("containers") or ()
    unheld = [reason for one in containers for reason in _unheld(one)]
    unread = [one.get("unknown") or one["enforcedReason"] for one in containers]
    elsewhere = [row.get("unknown") for row in usage.get("elsewhere") or ()]
    for reason in (*unheld, usage.get("enforcedReason"), *unread, *elsewhere):
        # One that runs no program on a GPU yet is as it should be.
        if reason in REASONS and reason != NO_PROCESS:
            step = instead.get(reason, REASONS[reason].step)
            if step:
                yield step


def _unheld(container: Row) -> Iterator[str]:
    """Why nothing holds its limit; behind an excess, why no process was stopped at it."""
    if container["enforcedBy"] != "None":
        return
    yield container["enforcedReason"]
    if container["enforcedReason"] == OVER_LIMIT:
        for row in container["perGpu"]:
            for process in row.get("processes") or ():
                if process["boundBy"] == "None" and process["boundReason"]:
                    yield process["boundReason"]


def _of_this_pod(pod: Row, decider: Decider | None) -> dict[str, str]:
    """Steps that differ from the usual ones, by reason."""
    found: dict[str, str] = {}
    if not _has_sidecar(pod):
        found |= dict.fromkeys((SILENT, SAMPLER_STUCK), _AGENT)
    spec = decider.spec if decider is not None else None
    if decider is not None:
        found[NO_LIMIT] = "declare what it needs (nvidia.com/memory), or " + (
            f"give {decider.title} limits.default"
            if spec is not None
            else "make a policy with limits.default that selects it"
        )
    if spec is not None and spec.mode == "Observe" and spec.limits.default_bytes is not None:
        default = show_bytes(spec.limits.default_bytes)
        found[NO_LIMIT] = (
            "declare what it needs (nvidia.com/memory), or set the policy's mode to Active: its"
            f" default, {default}, is not applied in Observe"
        )
    return found


def _has_sidecar(pod: Row) -> bool:
    inits = (pod.get("spec") or {}).get("initContainers") or ()
    return any(one.get("name") == names.SIDECAR_CONTAINER for one in inits)

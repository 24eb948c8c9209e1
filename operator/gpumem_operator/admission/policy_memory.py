"""What a policy's status says about memory: declared, used, unknown, and what holds the limits."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpumem_operator.api import conditions
from gpumem_operator.api.measure import Measure, settled, used_of
from gpumem_operator.api.quantity import add_bytes, show_bytes
from gpumem_operator.api.transitions import Finding
from gpumem_operator.reports.reasons import REASONS, count

ENFORCERS: Final = ("hardware", "driver", "mps", "framework", "none", "unknown")


@dataclass(frozen=True)
class PodMemory:
    """One pod of the policy."""

    declared_bytes: int | None
    """None where it did not say."""
    measure: Measure


def memory(pods: Sequence[PodMemory], current: Mapping[str, Any]) -> dict[str, Any]:
    """`status.memory`; `current` is what is stored. None takes a field away."""
    declared = add_bytes(pod.declared_bytes or 0 for pod in pods)
    used = settled(used_of([pod.measure for pod in pods]), current.get("usedBytes"))
    return {
        "declaredBytes": declared,
        "usedBytes": used,
        "unknownPods": sum(pod.measure.missing for pod in pods),
        "readable": {
            "declared": show_bytes(declared),
            "used": None if used is None else show_bytes(used),
        },
    }


def enforcers(pods: Sequence[PodMemory]) -> dict[str, int]:
    """`status.enforcers`: pods that have started, by what holds their limits."""
    kinds = Counter(pod.measure.enforcer for pod in pods if pod.measure.started)
    return {kind: kinds[kind] for kind in ENFORCERS}


def measurement(pods: Sequence[PodMemory]) -> Finding:
    """Whether use is measured of all that runs."""
    running = [pod.measure for pod in pods if pod.measure.started]
    unknown = [measure.unknown or "" for measure in running if measure.missing]
    if not running:
        return _finding("False", conditions.NO_PODS, "No pod of this policy runs now.")
    if not unknown:
        text = "What every running pod holds is measured."
        return _finding("False", conditions.MEASURED, text)
    whose = f"{len(unknown)} of {len(running)} running pods"
    text = f"What {whose} hold is not known: {count(unknown)}.{_next_steps(unknown)}"
    return _finding("True", _reason(unknown), text)


def _reason(unknown: Sequence[str]) -> str:
    if set(unknown) == {"NotMeasured"}:
        return conditions.NOT_MEASURED
    if "NoAgentOnNode" in unknown:
        return conditions.NO_AGENT_ON_NODE
    waiting = set(unknown) <= {"NoReport", "NotMeasured"}
    return conditions.WAITING_FOR_REPORTS if waiting else conditions.UNREADABLE


_MOST_EXPLAINED: Final = 3


def _next_steps(reasons: Sequence[str]) -> str:
    """A sentence for each reason, the most frequent first."""
    counted = Counter(sorted(reasons)).most_common(_MOST_EXPLAINED)
    return "".join(f" {reason}: {REASONS[reason]}." for reason, _ in counted if reason in REASONS)


def _finding(status: Any, reason: str, text: str) -> Finding:
    return Finding(conditions.MEASUREMENT_UNAVAILABLE, status, reason, text)

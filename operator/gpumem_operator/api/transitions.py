"""New conditions from old ones: lastTransitionTime moves only when the status does."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from gpumem_operator.api.conditions import MOST_CONDITIONS
from gpumem_operator.api.printable import printable

_LONGEST_MESSAGE: Final = 32768
"""Of a condition, by the schema of both kinds."""


@dataclass(frozen=True)
class Finding:
    """What one condition should say now."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str


def condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The condition of a raw status; empty where there is none."""
    for one in status.get("conditions") or ():
        if one.get("type") == kind:
            found: Mapping[str, Any] = one
            return found
    return {}


def renew_conditions(
    current: Iterable[Mapping[str, Any]],
    findings: Sequence[Finding],
    *,
    generation: int,
    now: str,
) -> list[dict[str, Any]]:
    """The conditions to store, as raw objects: those that were there in their order, then new ones.

    Conditions that no finding is about stay as they are, as far as there is room. `now` is RFC 3339
    in UTC.
    """
    stored = {str(condition.get("type")): dict(condition) for condition in current}
    for finding in findings:
        old = stored.get(finding.type, {})
        unchanged = old.get("status") == finding.status
        stored[finding.type] = {
            "type": finding.type,
            "status": finding.status,
            "reason": finding.reason,
            "message": printable(finding.message[:_LONGEST_MESSAGE]),
            "lastTransitionTime": (old.get("lastTransitionTime") if unchanged else None) or now,
            "observedGeneration": generation,
        }
    ours = {finding.type for finding in findings}
    room = MOST_CONDITIONS - len(ours)
    foreign = [condition for kind, condition in stored.items() if kind not in ours]
    kept = {str(condition["type"]) for condition in foreign[: max(room, 0)]}
    return [condition for kind, condition in stored.items() if kind in ours or kind in kept]

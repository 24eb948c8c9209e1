"""Condition ScalingActive of a policy, from what became of each of its targets."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gpumem_operator.api import conditions
from gpumem_operator.api.transitions import Finding
from gpumem_operator.scaling import reasons
from gpumem_operator.scaling.used import without_amounts

_NOT_FOLLOWING: Final = frozenset(
    {
        reasons.NO_PODS,
        reasons.SCALED_TO_ZERO,
        reasons.TOO_MANY_UNKNOWN,
        reasons.PREALLOCATES,
        reasons.TARGET_NOT_FOUND,
        reasons.NOT_SCALABLE,
        reasons.NOT_ALLOWED,
        reasons.OTHER_SCALER,
        reasons.OTHER_POLICY_OWNS_PODS,
        reasons.OTHER_POLICY_SCALES,
        reasons.OBSERVED,
        reasons.UNREADABLE,
    }
)
_MOST_NAMED: Final = 3


def scaling_active(entries: Sequence[Mapping[str, Any]]) -> Finding:
    """From the entries of `status.scaling`, of which there is at least one."""
    idle = [entry for entry in entries if entry["reason"] in _NOT_FOLLOWING]
    if not idle:
        text = f"Replicas of {len(entries)} workloads follow GPU memory."
        return Finding(conditions.SCALING_ACTIVE, "True", conditions.TARGETS_FOLLOW, text)
    named = " ".join(f"{_title(entry)}: {entry['message']}" for entry in idle[:_MOST_NAMED])
    more = f" And {len(idle) - _MOST_NAMED} more." if len(idle) > _MOST_NAMED else ""
    text = f"{len(idle)} of {len(entries)} workloads are not scaled. {named}{more}"
    return Finding(conditions.SCALING_ACTIVE, "False", idle[0]["reason"], text)


def settled_entries(
    entries: Sequence[Mapping[str, Any]],
    stored: Sequence[Mapping[str, Any]],
    *,
    numbers_are_old: bool = True,
) -> list[Mapping[str, Any]]:
    """The entries to store. Where only measured numbers moved, a stored one stands: a percentage
    until it moved by more than one, the metric of an engine until the stored number is old."""
    before = {_title(entry): entry for entry in stored if entry.get("targetRef")}
    return [
        _settled(entry, before.get(_title(entry), {}), numbers_are_old=numbers_are_old)
        for entry in entries
    ]


def _settled(
    entry: Mapping[str, Any], stored: Mapping[str, Any], *, numbers_are_old: bool
) -> Mapping[str, Any]:
    moving = ("message", "currentPercent")
    same = {key: value for key, value in entry.items() if key not in moving}
    if same != {key: value for key, value in stored.items() if key not in moving}:
        return entry
    now, then = entry.get("currentPercent"), stored.get("currentPercent")
    if now is None and then is None:
        return entry if numbers_are_old else stored
    if now is None or then is None:
        return entry
    says_the_same = without_amounts(entry["message"]) == without_amounts(stored.get("message", ""))
    return stored if says_the_same and abs(now - then) <= 1 else entry


def _title(entry: Mapping[str, Any]) -> str:
    target = entry["targetRef"]
    return f"{target.get('kind')} {target.get('name')} ({target.get('apiVersion')})"

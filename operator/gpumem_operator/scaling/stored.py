"""What is remembered of a target, as it stands in the policy's `status.scaling`."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from gpumem_operator.api.scaling import PastRecommendation, ScalingTargetStatus, TargetRef
from gpumem_operator.scaling.decision import Decision
from gpumem_operator.scaling.facts import Hold
from gpumem_operator.scaling.memory import MOST_CHANGES, MOST_PASTS, Change, Memory, Past

_LONGEST_MESSAGE = 1024
Entry = dict[str, Any]


def memory_of(scaling: Iterable[Mapping[str, Any]], target: TargetRef) -> Memory:
    """What the stored `status.scaling` remembers of a target; nothing where it can not be read."""
    reference = reference_of(target)
    found = next((entry for entry in scaling if entry.get("targetRef") == reference), None)
    if found is None:
        return Memory()
    try:
        status = ScalingTargetStatus.model_validate(found, extra="ignore")
        return Memory(
            latest=status.recommended_replicas,
            highest=tuple(map(_past, status.recent_highest)),
            lowest=tuple(map(_past, status.recent_lowest)),
            changes=tuple(
                Change(seconds(one.time), one.from_replicas, one.to_replicas, one.message)
                for one in status.changes
            ),
        )
    except (ValidationError, ValueError):
        # Only the operator writes it. Whatever else is there must not stop scaling for good.
        return Memory()


def decided(target: TargetRef, decision: Decision) -> Entry:
    """The entry of `status.scaling` for a decision."""
    entry: Entry = {
        "targetRef": reference_of(target),
        "currentReplicas": decision.replicas,
        "desiredReplicas": decision.desired,
        "reason": decision.reason,
        "message": decision.message[:_LONGEST_MESSAGE],
        **_remembered(decision.memory),
    }
    return entry if decision.percent is None else {**entry, "currentPercent": decision.percent}


def refused(target: TargetRef, why: Hold, memory: Memory, *, replicas: int | None) -> Entry:
    """The entry of `status.scaling` for a target that can not be decided about."""
    entry: Entry = {
        "targetRef": reference_of(target),
        "reason": why.reason,
        "message": why.message[:_LONGEST_MESSAGE],
        **_remembered(memory),
    }
    return entry if replicas is None else {**entry, "currentReplicas": replicas}


def reference_of(target: TargetRef) -> Entry:
    """As it is stored."""
    return target.model_dump(by_alias=True)


def timestamp(moment: int) -> str:
    """Seconds since 1970 as RFC 3339 in UTC."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(time: str) -> int:
    """The inverse of `timestamp`. Raises ValueError."""
    return int(datetime.fromisoformat(time).timestamp())


def _remembered(memory: Memory) -> Entry:
    entry: Entry = {
        "recentHighest": _stored(memory.highest),
        "recentLowest": _stored(memory.lowest),
        "changes": [
            {
                "time": timestamp(one.time),
                "fromReplicas": one.before,
                "toReplicas": one.after,
                "message": one.message[:_LONGEST_MESSAGE],
            }
            for one in memory.changes[-MOST_CHANGES:]
        ],
    }
    return entry if memory.latest is None else {**entry, "recommendedReplicas": memory.latest}


def _stored(pasts: tuple[Past, ...]) -> list[Entry]:
    return [
        {"until": timestamp(past.until), "replicas": past.replicas} for past in pasts[-MOST_PASTS:]
    ]


def _past(one: PastRecommendation) -> Past:
    return Past(seconds(one.until), one.replicas)

"""What is to be done about one pod: the condition first, then the deed.

    within --> near --> over: grace period --> actions in order --> exhausted
      ^________^__________|__________________________|

The condition says which action was begun and when, and is stored before anything is done. Whoever
leads next reads it there and goes on at the same place.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, Literal

from gpumem_operator.api.policy import Enforcement
from gpumem_operator.enforcement import delete, evict, kill, reclaim
from gpumem_operator.enforcement.facts import (
    ACTIONS_EXHAUSTED,
    DELETING,
    EVICTING,
    EVICTION_LOOP,
    KILLING,
    NEAR_LIMIT,
    OVER_LIMIT,
    RECLAIMING,
    WITHIN_LIMIT,
    WOULD_ACT,
    Action,
    Condition,
    Facts,
)
from gpumem_operator.enforcement.level import Level, level_of
from gpumem_operator.enforcement.sentences import now_holds, what_follows
from gpumem_operator.enforcement.steps import Deed, Doing, Finished, Policy, Removal, Stopped

WOULD_HAVE: Final = "WouldHave"

_POLICIES: Final[Mapping[Action, Policy]] = MappingProxyType(
    {"Reclaim": reclaim.step, "Evict": evict.step, "Delete": delete.step, "Kill": kill.step}
)
_STAGES: Final[Mapping[Action, str]] = MappingProxyType(
    {"Reclaim": RECLAIMING, "Evict": EVICTING, "Delete": DELETING, "Kill": KILLING}
)
_SOFT: Final[Mapping[str, Action]] = MappingProxyType({RECLAIMING: "Reclaim", KILLING: "Kill"})
"""Stages that end well with the pod still there."""


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a policy's `recentActions`."""

    action: Action
    result: str
    message: str
    limit_bytes: int | None = None
    used_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """All of it may be empty: then everything is as it should be, or unknown."""

    condition: Condition | None = None
    """To be stored before anything else; None where it stays as it is."""
    deed: Deed | None = None
    records: tuple[Record, ...] = ()
    event: str = ""
    """Reason of an Event about the condition's message; empty without one."""


def decide(facts: Facts, now: datetime) -> Decision:
    """The decision at this moment. Nothing follows from what is unknown."""
    level = level_of(facts)
    if facts.terminating or level is Level.UNKNOWN:
        return Decision()
    if level is not Level.OVER:
        return _within(facts, level, now)
    if facts.stored is None or facts.stored.status != "True":
        since = _whole_second(now)
        begun = _condition(facts, OVER_LIMIT, what_follows(facts), now=now, since=since)
        return Decision(begun, event=_told(facts, OVER_LIMIT))
    if now < grace_ends(facts.stored, facts.settings):
        return Decision()
    if facts.mode == "Enforce":
        return _act(facts, facts.stored, now)
    return _audit(facts, facts.stored, now) if facts.mode == "Audit" else _warn(facts, now)


def grace_ends(condition: Condition, settings: Enforcement) -> datetime:
    """When the actions begin, where the pod is over its limit until then."""
    return condition.since + timedelta(seconds=settings.grace_period_seconds)


def _whole_second(moment: datetime) -> datetime:
    """Not before the moment: as times are stored, and so that no grace period is too short."""
    return moment + timedelta(microseconds=-moment.microsecond % 1_000_000)


def _within(facts: Facts, level: Level, now: datetime) -> Decision:
    reason = NEAR_LIMIT if level is Level.NEAR else WITHIN_LIMIT
    stored = facts.stored
    if stored is None and level is Level.WITHIN:
        return Decision()
    if stored is not None and (stored.status, stored.reason) == ("False", reason):
        return Decision()
    since = stored.since if stored is not None and stored.status == "False" else now
    condition = _condition(facts, reason, "", now=now, since=since, status="False")
    ended = _SOFT.get(stored.reason) if stored is not None else None
    records = (_record(facts, ended, "Done", "use fell to the limit"),) if ended else ()
    near = _told(facts, NEAR_LIMIT) if reason == NEAR_LIMIT and stored != condition else ""
    return Decision(condition, records=records, event=near)


def _warn(facts: Facts, now: datetime) -> Decision:
    """Nothing more is done; what an earlier mode had begun ends here."""
    if facts.stored is None or facts.stored.reason == OVER_LIMIT:
        return Decision()
    since = facts.stored.since
    return Decision(_condition(facts, OVER_LIMIT, what_follows(facts), now=now, since=since))


def _audit(facts: Facts, stored: Condition, now: datetime) -> Decision:
    if stored.reason == WOULD_ACT or not facts.settings.actions:
        return Decision()
    actions = ", then ".join(facts.settings.actions)
    message = f"mode Enforce would have done: {actions}"
    condition = _condition(facts, WOULD_ACT, message, now=now, since=stored.since)
    return Decision(
        condition, records=(_record(facts, facts.settings.actions[0], WOULD_HAVE, message),)
    )


def _act(facts: Facts, stored: Condition, now: datetime) -> Decision:
    if stored.reason == ACTIONS_EXHAUSTED:
        return Decision()
    records: list[Record] = []
    began = stored.step_began
    actions = facts.settings.actions
    begun = _begun(stored, actions)
    if begun is None:
        begun, began = 0, now
    elif stored.reason == EVICTION_LOOP:
        began = now
    for action in actions[begun:]:
        step = _POLICIES[action](facts, began, now)
        if not isinstance(step, Finished):
            return _during(facts, stored, action, step, began=began, records=records)
        records.append(_record(facts, action, step.result, step.message))
        began = now
    condition = _condition(facts, ACTIONS_EXHAUSTED, _EXHAUSTED, now=now, since=stored.since)
    return Decision(condition, records=tuple(records), event=ACTIONS_EXHAUSTED)


_EXHAUSTED: Final = (
    "all actions of the policy were tried. Next step: use less in the program, declare more, or"
    " add Evict to spec.enforcement.actions"
)


def _begun(stored: Condition, actions: list[Action]) -> int | None:
    """Place of the action that was begun; None before the first one, or where the policy has
    another list now."""
    for place, action in enumerate(actions):
        loops = stored.reason == EVICTION_LOOP and action in ("Evict", "Delete")
        if stored.reason == _STAGES[action] or loops:
            return place
    return None


def _during(
    facts: Facts,
    stored: Condition,
    action: Action,
    step: Doing | Stopped,
    *,
    began: datetime,
    records: list[Record],
) -> Decision:
    reason = step.reason if isinstance(step, Stopped) else _STAGES[action]
    deed = step.deed if isinstance(step, Doing) else None
    if reason == stored.reason:
        return Decision(None, deed, tuple(records))
    message = step.message if isinstance(step, Stopped) else f"{action} has begun"
    if isinstance(step, Stopped):
        records = [*records, _record(facts, action, reason, message)]
    condition = _condition(facts, reason, message, now=began, since=stored.since)
    # An eviction is told once it is known what became of it.
    event = "" if isinstance(deed, Removal) else reason
    return Decision(condition, deed, tuple(records), event=event)


def _condition(
    facts: Facts,
    reason: str,
    message: str,
    *,
    now: datetime,
    since: datetime,
    status: Literal["True", "False"] = "True",
) -> Condition:
    text = ". ".join(part for part in (now_holds(facts), message) if part)
    return Condition(status, reason, since, now, f"{text}.")


def _record(facts: Facts, action: Action, result: str, message: str) -> Record:
    worst = facts.worst
    record = Record(action, result, message)
    if worst is None:
        return record
    return replace(record, limit_bytes=worst.limit_bytes, used_bytes=worst.used.bytes)


def _told(facts: Facts, reason: str) -> str:
    """Audit records, and tells nobody."""
    return "" if facts.mode == "Audit" else reason

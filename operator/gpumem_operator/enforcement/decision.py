"""What is to be done about one pod: the condition first, then the deed.

    within --> near --> over: grace period --> actions in order --> exhausted
      ^________^__________|_____^____________________|

The condition says which action was begun and when, which were tried before it, and what was told;
it is stored before anything is done. Whoever leads next reads it there and goes on at the same
place, and a policy that says something else by now is seen by it: no state is the last one.
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
    KILLING,
    NEAR_LIMIT,
    NOT_JUDGED,
    OVER_LIMIT,
    RECLAIMING,
    WITHIN_LIMIT,
    WOULD_ACT,
    Action,
    Condition,
    Facts,
)
from gpumem_operator.enforcement.level import Level, level_of
from gpumem_operator.enforcement.sentences import (
    nothing_left,
    now_holds,
    says,
    what_an_excess_brings,
    what_follows,
    would_have,
)
from gpumem_operator.enforcement.steps import Deed, Doing, Finished, Policy, Removal, Stopped
from gpumem_operator.enforcement.tried import tried_in, tried_so_far

WOULD_HAVE: Final = "WouldHave"
CLOCKS_DIFFER: Final = timedelta(seconds=60)
"""So much the clocks of two leaders may: what begins later than that from now, the grace period or
an action, was begun by a clock that is right no more, and would be waited for until then."""

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
    """The decision at this moment. Nothing follows from what is unknown, and nothing more is done
    about a pod that ends soon."""
    if facts.mode == "None":
        return _unjudged(facts, now)
    level = level_of(facts)
    leaves = facts.ending is not None and facts.ending.is_soon(now, facts.settings)
    if leaves or level is Level.UNKNOWN:
        return Decision()
    if level is not Level.OVER:
        return _within(facts, level, now)
    stored = facts.stored
    if stored is None or stored.status != "True" or _begins_later(stored, now):
        since = _whole_second(now)
        begun = _condition(facts, OVER_LIMIT, what_follows(facts), now=since, since=since)
        return Decision(begun, event=_told(facts, OVER_LIMIT))
    if now < grace_ends(stored, facts.settings) or facts.mode == "Warn":
        return _nothing_yet(facts, stored, now)
    return (_act if facts.mode == "Enforce" else _audit)(facts, stored, now)


def grace_ends(condition: Condition, settings: Enforcement) -> datetime:
    """When the actions begin, where the pod is over its limit until then."""
    return condition.since + timedelta(seconds=settings.grace_period_seconds)


def _begins_later(stored: Condition, now: datetime) -> bool:
    """By a clock that was not right: it would be waited for that moment."""
    return max(stored.since, stored.step_began) > now + CLOCKS_DIFFER


def _whole_second(moment: datetime) -> datetime:
    """Not before the moment: as times are stored, and so that no grace period is too short."""
    return moment + timedelta(microseconds=-moment.microsecond % 1_000_000)


def _unjudged(facts: Facts, now: datetime) -> Decision:
    """Whatever was said under a policy that is gone is taken back."""
    if facts.stored is None or facts.stored.reason == NOT_JUDGED:
        return Decision()
    message = "No policy decides about what it holds"
    return Decision(Condition("False", NOT_JUDGED, now, now, f"{message}."))


def _within(facts: Facts, level: Level, now: datetime) -> Decision:
    reason = NEAR_LIMIT if level is Level.NEAR else WITHIN_LIMIT
    message = what_an_excess_brings(facts) if level is Level.NEAR else ""
    stored = facts.stored
    if stored is None and level is Level.WITHIN:
        return Decision()
    same = stored is not None and (stored.status, stored.reason) == ("False", reason)
    if same and stored is not None and (not message or says(stored.message, message)):
        return Decision()
    since = stored.since if stored is not None and stored.status == "False" else now
    condition = _condition(facts, reason, message, now=now, since=since, status="False")
    ended = _SOFT.get(stored.reason) if stored is not None else None
    records = (_record(facts, ended, "Done", "use fell to the limit"),) if ended else ()
    near = _told(facts, NEAR_LIMIT) if reason == NEAR_LIMIT else ""
    return Decision(condition, records=records, event=near)


def _nothing_yet(facts: Facts, stored: Condition, now: datetime) -> Decision:
    """In its grace period, or under mode Warn; what an earlier policy had begun ends here."""
    message = what_follows(facts)
    if stored.reason == OVER_LIMIT and says(stored.message, message):
        return Decision()
    condition = _condition(facts, OVER_LIMIT, message, now=now, since=stored.since)
    return Decision(condition, event=_told(facts, OVER_LIMIT))


def _audit(facts: Facts, stored: Condition, now: datetime) -> Decision:
    if not facts.settings.actions:
        return _nothing_yet(facts, stored, now)
    message = would_have(facts)
    if stored.reason == WOULD_ACT and says(stored.message, message):
        return Decision()
    condition = _condition(facts, WOULD_ACT, message, now=now, since=stored.since)
    return Decision(
        condition, records=(_record(facts, facts.settings.actions[0], WOULD_HAVE, message),)
    )


def _act(facts: Facts, stored: Condition, now: datetime) -> Decision:
    """The first action of the policy that was not tried, as the policy is today."""
    tried = tried_in(stored.message)
    records: list[Record] = []
    for action in facts.settings.actions:
        if action in tried:
            continue
        began = stored.step_began if stored.reason == _STAGES[action] else now
        step = _POLICIES[action](facts, began, now)
        if not isinstance(step, Finished):
            return _during(facts, action, step, began=began, records=records, tried=tried)
        records.append(_record(facts, action, step.result, step.message))
        tried = (*tried, action)
    if stored.reason == ACTIONS_EXHAUSTED and not records:
        return Decision()
    message = _sentences(nothing_left(facts), tried_so_far(tried))
    condition = _condition(facts, ACTIONS_EXHAUSTED, message, now=now, since=stored.since)
    return Decision(condition, records=tuple(records), event=ACTIONS_EXHAUSTED)


def _during(
    facts: Facts,
    action: Action,
    step: Doing | Stopped,
    *,
    began: datetime,
    records: list[Record],
    tried: tuple[Action, ...],
) -> Decision:
    stored = facts.stored
    assert stored is not None
    reason = step.reason if isinstance(step, Stopped) else _STAGES[action]
    deed = step.deed if isinstance(step, Doing) else None
    is_new = reason != stored.reason
    if not is_new and not records:
        return Decision(None, deed)
    if isinstance(step, Stopped):
        message = step.message
        records = [*records, *([_record(facts, action, reason, message)] if is_new else [])]
    else:
        note = deed.note if isinstance(deed, Removal) else ""
        message = _sentences(f"{action} has begun", note)
    message = _sentences(message, tried_so_far(tried))
    condition = _condition(facts, reason, message, now=began, since=stored.since)
    # An eviction is told once it is known what became of it.
    event = "" if isinstance(deed, Removal) or not is_new else reason
    return Decision(condition, deed, tuple(records), event=event)


def _sentences(*parts: str) -> str:
    return ". ".join(part for part in parts if part)


def _condition(
    facts: Facts,
    reason: str,
    message: str,
    *,
    now: datetime,
    since: datetime,
    status: Literal["True", "False"] = "True",
) -> Condition:
    return Condition(status, reason, since, now, f"{_sentences(now_holds(facts), message)}.")


def _record(facts: Facts, action: Action, result: str, message: str) -> Record:
    worst = facts.worst
    record = Record(action, result, message)
    if worst is None:
        return record
    return replace(record, limit_bytes=worst.limit_bytes, used_bytes=worst.used.bytes)


def _told(facts: Facts, reason: str) -> str:
    """Audit records, and tells nobody."""
    return "" if facts.mode == "Audit" else reason

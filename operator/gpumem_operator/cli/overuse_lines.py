"""What is said and done about a pod over its limit: lines of `why`, from stored objects. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.admission.decider import Decider
from gpumem_operator.api.policy import DefaultPolicySpec
from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.api.transitions import condition

Row = Mapping[str, Any]

MOST_ACTIONS: Final = 3
_WITHIN: Final = "WithinLimit"


def overuse_lines(
    pod: Row, decider: Decider | None, usage: Row | None, actions: Sequence[Row]
) -> Iterator[str]:
    """Nothing about a pod that never came near its limit.

    `decider` is who decides about it today, `actions` are about whichever pods, newest first.
    """
    found = condition(pod.get("status") or {}, names.OVERUSE_CONDITION)
    done = actions_about(pod, actions)
    if not found and not done:
        return
    if found:
        yield f"  overuse: {found.get('status')} ({found.get('reason')}) {_since(found)}"
        yield f"    {found.get('message')}{_by_now(usage)}"
    if decider is not None and decider.spec is not None and _is_told(found):
        yield f"    {decider.title}: {enforcement_in_words(decider.spec)}"
    yield from (f"    {action_line(one)}" for one in done[:MOST_ACTIONS])
    if (earlier := len(done) - MOST_ACTIONS) > 0:
        word = "action stands" if earlier == 1 else "actions stand"
        yield f"    {earlier} earlier {word} in status.recentActions of the policy"


def actions_about(pod: Row, actions: Sequence[Row]) -> list[Row]:
    """Those about this very pod."""
    uid = pod["metadata"].get("uid")
    return [one for one in actions if uid is not None and one.get("uid") == uid]


def recent_actions(policies: Iterable[Row]) -> tuple[Row, ...]:
    """Of all these raw policies, newest first."""
    lines = [
        line
        for policy in policies
        for line in (policy.get("status") or {}).get("recentActions") or ()
    ]
    return tuple(sorted(lines, key=lambda line: str(line.get("time")), reverse=True))


def action_line(action: Row, *, names_pod: bool = False) -> str:
    """One entry of a policy's `recentActions`."""
    whose = f" of pod {action.get('pod')}" if names_pod else ""
    used, limit = action.get("usedBytes"), action.get("limitBytes")
    numbers = "" if used is None or limit is None else _numbers(used, limit)
    reason = f": {reason}" if (reason := action.get("reason")) else ""
    what = f"{action.get('action')}{whose}: {action.get('result')}"
    return f"{action.get('time')} {what}{numbers}{reason}"


def _numbers(used: int, limit: int) -> str:
    return f" ({show_bytes(used)} held, limit {show_bytes(limit)})"


def enforcement_in_words(spec: DefaultPolicySpec) -> str:
    """What follows for a pod that stays over its limit."""
    settings = spec.enforcement
    actions = ", then ".join(settings.actions) or "nothing"
    seconds = f"{settings.grace_period_seconds} s"
    if spec.mode == "Observe" or settings.mode == "Audit":
        why = "spec.mode Observe" if spec.mode == "Observe" else "enforcement mode Audit"
        return f"{why}: overuse is recorded, nothing is done (Enforce would, after {seconds})"
    if settings.mode == "Warn":
        return "enforcement mode Warn: overuse is told, nothing is done"
    return f"enforcement mode Enforce: after {seconds} over the limit {actions}"


def _since(found: Row) -> str:
    """When it turned, and when what its message says was found, where that is another time."""
    turned, probed = found.get("lastTransitionTime"), found.get("lastProbeTime")
    as_of = f", said at {probed}" if probed not in (None, turned) else ""
    return f"since {turned}{as_of}"


def _by_now(usage: Row | None) -> str:
    """The message is of when it was said: where nothing newer is known, that has to be told."""
    if usage and usage.get("usedBytes") is None:
        return f" What it holds now is not known ({usage.get('unknown')})."
    return ""


def _is_told(found: Row) -> bool:
    return bool(found) and found.get("reason") != _WITHIN

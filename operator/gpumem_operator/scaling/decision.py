"""How many replicas one workload should have now: a chain of rules, each in its own file.

metric -> known enough? -> ratio -> bounds -> stabilization -> pace -> room
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from gpumem_operator.api.count import count
from gpumem_operator.api.scaling import ScalingTarget
from gpumem_operator.scaling import pace, reasons, room
from gpumem_operator.scaling.engine_signal import by_signal
from gpumem_operator.scaling.facts import Hold, Reading, TargetFacts, TargetPod
from gpumem_operator.scaling.memory import Change, Memory
from gpumem_operator.scaling.preallocation import says_nothing
from gpumem_operator.scaling.ratio import recommend
from gpumem_operator.scaling.stabilization import remember, stabilized
from gpumem_operator.scaling.unknown_pods import too_little_known
from gpumem_operator.scaling.used import by_use


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do about one workload."""

    replicas: int
    """What it asks for now."""
    desired: int
    """What it shall ask for."""
    reason: str
    message: str
    percent: int | None
    """Used memory in percent of the limits; None where that is not the metric, or not known."""
    memory: Memory
    """To be kept for the next decision, with the change that `desired` is."""

    @property
    def changes(self) -> bool:
        return self.desired != self.replicas

    def only_told(self) -> "Decision":
        """The same, for a policy that observes: what would be done is said and not done."""
        if not self.changes:
            return self
        return replace(
            self,
            desired=self.replicas,
            reason=reasons.OBSERVED,
            message=f"Not done, because spec.mode is Observe: {self.message}",
            memory=replace(self.memory, changes=self.memory.changes[:-1]),
        )


_Rule = Callable[[int], tuple[int, Hold]]
"""Takes a number of replicas to the one that the rule allows, and says why where they differ."""


def decide(target: ScalingTarget, facts: TargetFacts, memory: Memory, *, now: int) -> Decision:
    """The decision at `now` (whole seconds since 1970). Same inputs, same answer."""
    memory = memory.settled(facts.replicas)
    reading = _read(target, facts.pods)
    hold = _nothing_to_decide(target, facts, reading)
    # What is out of bounds is brought back at once, as by the HorizontalPodAutoscaler.
    outside = not target.min_replicas <= facts.replicas <= target.max_replicas
    undecided = outside or hold is not None
    wanted = facts.replicas if undecided else recommend(reading.loads, facts.replicas)
    memory = remember(
        memory,
        _bounded(target, wanted)[0],
        replicas=facts.replicas,
        now=now,
        up_seconds=target.scale_up.stabilization_seconds,
        down_seconds=target.scale_down.stabilization_seconds,
    )
    narrowed = _Narrowed(wanted)
    if facts.replicas and facts.pods:
        for rule in _rules(target, facts, memory, now):
            narrowed.by(rule)
    reason, message = _told(facts.replicas, hold, reading, wanted, narrowed)
    if narrowed.replicas != facts.replicas:
        change = Change(now, facts.replicas, narrowed.replicas, message)
        memory = memory.with_change(change, kept_seconds=pace.LONGEST_PERIOD_SECONDS)
    return Decision(facts.replicas, narrowed.replicas, reason, message, reading.percent, memory)


def _read(target: ScalingTarget, pods: Sequence[TargetPod]) -> Reading:
    if target.engine_signal is None:
        return by_use(pods, target.target_percent)
    signal = target.engine_signal
    return by_signal(pods, signal.metric_name, signal.target_value)


def _nothing_to_decide(target: ScalingTarget, facts: TargetFacts, reading: Reading) -> Hold | None:
    if facts.replicas == 0:
        return Hold(
            reasons.SCALED_TO_ZERO,
            "Somebody set it to 0 replicas, and there it stays until somebody sets it to another"
            " number.",
        )
    if not facts.pods:
        return Hold(reasons.NO_PODS, "It has no pod that asks for a GPU and is measured.")
    preallocates = says_nothing(facts.pods) if target.metric == "Used" else None
    return preallocates or too_little_known(reading.loads)


@dataclass
class _Narrowed:
    """A number of replicas on its way through the rules."""

    replicas: int
    limits: list[Hold] = field(default_factory=list)
    """What the rules said that changed it."""

    def by(self, rule: _Rule) -> None:
        replicas, why = rule(self.replicas)
        if replicas != self.replicas:
            self.replicas = replicas
            self.limits.append(why)


def _rules(target: ScalingTarget, facts: TargetFacts, memory: Memory, now: int) -> Iterable[_Rule]:
    yield lambda wanted: _bounded(target, wanted)
    if target.min_replicas <= facts.replicas <= target.max_replicas:
        yield lambda _: _stable(memory, facts.replicas)
        yield lambda wanted: _paced(target, facts, memory, wanted=wanted, now=now)
    yield lambda wanted: _paid_for(facts, wanted)


def _bounded(target: ScalingTarget, wanted: int) -> tuple[int, Hold]:
    if wanted > target.max_replicas:
        why = Hold(reasons.AT_MAXIMUM, f"maxReplicas is {target.max_replicas}")
        return target.max_replicas, why
    why = Hold(reasons.AT_MINIMUM, f"minReplicas is {target.min_replicas}")
    return max(wanted, target.min_replicas), why


def _stable(memory: Memory, replicas: int) -> tuple[int, Hold]:
    stable = stabilized(memory, replicas)
    why = Hold(
        reasons.STABILIZING,
        f"recommendations of the stabilization window still stand for {stable}",
    )
    return stable, why


def _paced(
    target: ScalingTarget, facts: TargetFacts, memory: Memory, *, wanted: int, now: int
) -> tuple[int, Hold]:
    grows = wanted > facts.replicas
    bound, rules, field_name = (
        (pace.most, target.scale_up, "scaleUp")
        if grows
        else (pace.fewest, target.scale_down, "scaleDown")
    )
    allowed = bound(rules.policies, memory.changes, replicas=facts.replicas, now=now)
    why = Hold(reasons.PACE_LIMITED, f"{field_name}.policies allow {allowed} now")
    if allowed is None:
        return wanted, why
    return (min(wanted, allowed) if grows else max(wanted, allowed)), why


def _paid_for(facts: TargetFacts, wanted: int) -> tuple[int, Hold]:
    allowed = room.payable(facts.rooms, pods=len(facts.pods), replicas=facts.replicas)
    if allowed is None:
        return wanted, Hold("", "")
    return min(wanted, allowed), room.told(facts.rooms)


def _told(
    replicas: int, hold: Hold | None, reading: Reading, wanted: int, narrowed: _Narrowed
) -> tuple[str, str]:
    """Reason and message of what came out."""
    desired, limits = narrowed.replicas, narrowed.limits
    text = hold.message if hold else f"Its pods {reading.told}"
    if not hold and wanted != replicas:
        text += f": {count(wanted, 'replica')} instead of {replicas} would be right"
    bounds = [limit.message for limit in limits]
    text = "; ".join([text.rstrip("."), *bounds]) + "."
    if desired != replicas:
        reason = reasons.SCALED_UP if desired > replicas else reasons.SCALED_DOWN
        change = f"From {replicas} to {count(desired, 'replica')}"
        if hold:
            # Only a bound changes what is held.
            why = "; ".join(bounds)
            return reason, f"{change}: {why}. Then: {hold.message}"
        return reason, f"{change}. {text}"
    if hold:
        return hold.reason, text
    return (limits[-1].reason if limits else reasons.ON_TARGET), text

"""How fast replicas change: `scaleUp.policies` and `scaleDown.policies`.

Source of the rules: kubernetes, pkg/controller/podautoscaler/horizontal.go
(calculateScaleUpLimitWithScalingRules and its counterpart).
"""

from collections.abc import Iterable, Sequence

from gpumem_operator.api.scaling import ScalingPolicy
from gpumem_operator.scaling.memory import Change

LONGEST_PERIOD_SECONDS = 1800
"""By the schema."""


def most(
    policies: Sequence[ScalingPolicy], changes: Iterable[Change], *, replicas: int, now: int
) -> int | None:
    """The most replicas that may be asked for now; None where nothing bounds them."""
    if not policies:
        return None
    return max(replicas, *(_grown(one, _at_start(one, changes, replicas, now)) for one in policies))


def fewest(
    policies: Sequence[ScalingPolicy], changes: Iterable[Change], *, replicas: int, now: int
) -> int | None:
    """The fewest replicas that may be asked for now; None where nothing bounds them."""
    if not policies:
        return None
    return min(
        replicas, *(_shrunk(one, _at_start(one, changes, replicas, now)) for one in policies)
    )


def _at_start(policy: ScalingPolicy, changes: Iterable[Change], replicas: int, now: int) -> int:
    """Replicas at the start of the policy's period, apart from changes by others."""
    since = now - policy.period_seconds
    return replicas - sum(one.after - one.before for one in changes if one.time > since)


def _grown(policy: ScalingPolicy, start: int) -> int:
    if policy.type == "Pods":
        return start + policy.value
    return start + -(-start * policy.value // 100)


def _shrunk(policy: ScalingPolicy, start: int) -> int:
    if policy.type == "Pods":
        return start - policy.value
    return start * (100 - min(policy.value, 100)) // 100

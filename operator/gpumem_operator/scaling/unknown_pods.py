"""How little may be known: with more than half of the started pods unknown, nothing changes."""

from collections import Counter
from collections.abc import Sequence

from gpumem_operator.scaling import reasons
from gpumem_operator.scaling.facts import Hold, PodLoad


def too_little_known(loads: Sequence[PodLoad]) -> Hold | None:
    """Pods that have not started are no sign of a broken measurement, and not counted."""
    started = [load for load in loads if load.started]
    if not started:
        message = f"None of its {len(loads)} pods has started."
        return Hold(reasons.PODS_STARTING, message)
    unknown = [load.unknown for load in started if load.amount is None]
    if 2 * len(unknown) <= len(started):
        return None
    ranked = sorted(Counter(unknown).items(), key=lambda pair: (-pair[1], pair[0]))
    why = ", ".join(f"{number} {reason}" for reason, number in ranked)
    return Hold(
        reasons.TOO_MANY_UNKNOWN,
        f"Of {len(unknown)} of {len(started)} started pods the metric is not known ({why}):"
        " replicas stay as they are until at least half are known.",
    )

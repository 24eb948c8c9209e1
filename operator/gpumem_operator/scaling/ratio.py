"""From loads to a number of replicas, as HorizontalPodAutoscaler v2 counts.

Source of the rules: kubernetes, pkg/controller/podautoscaler/replica_calculator.go.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import Final

from gpumem_operator.scaling.facts import PodLoad

TOLERANCE: Final = Fraction(1, 10)
"""So far from the target, in parts of it, nothing is done."""


def recommend(loads: Sequence[PodLoad], replicas: int) -> int:
    """Replicas that bring the loads to their target; at least one load is known.

    Pods of which nothing is known, and those that have not started, hold nothing when growing and
    are full when shrinking, so that they never make a change larger. Nor do they turn it around.
    """
    known = [load for load in loads if load.amount is not None]
    ratio = Fraction(_sum(known, grows=True), sum(load.capacity for load in known))
    grows = ratio > 1
    everyone = [*loads, *_absent(known, replicas - len(loads))]
    careful = Fraction(_sum(everyone, grows=grows), sum(load.capacity for load in everyone))
    if abs(ratio - 1) <= TOLERANCE or abs(careful - 1) <= TOLERANCE:
        return replicas
    wanted = ceil(len(everyone) * careful)
    return max(replicas, wanted) if grows else min(replicas, wanted)


def _sum(loads: Sequence[PodLoad], *, grows: bool) -> int | Fraction:
    return sum(
        load.amount if load.amount is not None else 0 if grows else load.full for load in loads
    )


def _absent(known: Sequence[PodLoad], number: int) -> list[PodLoad]:
    """Stand-ins for replicas that have no pod yet: as large as the largest pod."""
    largest = max(known, key=lambda load: load.capacity)
    return [PodLoad(largest.capacity, largest.full, None, started=False)] * max(number, 0)

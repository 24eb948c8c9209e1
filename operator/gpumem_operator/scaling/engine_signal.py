"""Metric `EngineSignal`: what an inference server says of itself, on average over its pods."""

from collections.abc import Sequence
from fractions import Fraction

from gpumem_operator.scaling.facts import PodLoad, Reading, TargetPod


def by_signal(pods: Sequence[TargetPod], metric: str, target_value: str) -> Reading:
    """`target_value` is a positive decimal number.

    A pod whose metric was not read counts as on target when shrinking: unlike memory, a signal
    has no 100 % that every engine shares.
    """
    target = Fraction(target_value)
    loads = tuple(
        PodLoad(
            capacity=target,
            full=target,
            amount=pod.signal if pod.started else None,
            started=pod.started,
            unknown=pod.signal_unknown or "Unknown",
        )
        for pod in pods
    )
    known = [load.amount for load in loads if load.amount is not None]
    if not known:
        return Reading(loads, f"tell no {metric}")
    average = float(sum(known) / len(known))
    # Two decimals: a status is written whenever its text changes.
    told = (
        f"tell {metric} {round(average, 2):g} on average of {len(known)}, and {target_value} is"
        " wanted"
    )
    return Reading(loads, told)

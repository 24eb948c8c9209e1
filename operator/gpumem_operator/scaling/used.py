"""Metric `Used`: measured GPU memory in percent of the limits."""

import re
from collections.abc import Sequence

from gpumem_operator.api.count import count
from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.scaling.facts import PodLoad, Reading, TargetPod

NO_LIMIT = "NoLimit"
_AMOUNTS = re.compile(r"hold \d+% of their limits \(\S+ of ")


def by_use(pods: Sequence[TargetPod], target_percent: int) -> Reading:
    """Amounts are bytes x 100, so that percents need no fractions.

    A pod without a limit has no percentage; it counts as large as the largest of the others.
    """
    limits = [pod.limit_bytes for pod in pods if pod.limit_bytes]
    loads = tuple(_load(pod, max(limits, default=1), target_percent) for pod in pods)
    known = [pod for pod in pods if pod.started and pod.limit_bytes and pod.used_bytes is not None]
    if not known:
        return Reading(loads, "hold an unknown part of their limits")
    used = sum(pod.used_bytes or 0 for pod in known)
    limit = sum(pod.limit_bytes or 0 for pod in known)
    # Rounded down, as a pod's condition has it: less than all of it is never 100 %.
    percent = used * 100 // limit
    told = (
        f"hold {percent}% of their limits ({show_bytes(used)} of {show_bytes(limit)} in"
        f" {count(len(known), 'pod')}), and {target_percent}% is wanted"
    )
    return Reading(loads, told, percent)


def without_amounts(message: str) -> str:
    """What a message with such a text says beside what the pods hold, which moves all the time."""
    return _AMOUNTS.sub("hold a part of their limits (of ", message)


def _load(pod: TargetPod, stand_in: int, target_percent: int) -> PodLoad:
    limit = pod.limit_bytes or stand_in
    known = pod.started and pod.limit_bytes and pod.used_bytes is not None
    return PodLoad(
        capacity=limit * target_percent,
        full=limit * 100,
        amount=(pod.used_bytes or 0) * 100 if known else None,
        started=pod.started,
        unknown=NO_LIMIT if not pod.limit_bytes else pod.unknown or "Unknown",
    )

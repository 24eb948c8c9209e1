"""Pods that take their memory ahead of need: what they hold says nothing about their load."""

from collections.abc import Sequence

from gpumem_operator.scaling import reasons
from gpumem_operator.scaling.facts import Hold, TargetPod


def says_nothing(pods: Sequence[TargetPod]) -> Hold | None:
    """Whether metric Used is of no use, because one of the started pods preallocates."""
    found = sorted((pod.preallocator, pod.name) for pod in pods if pod.started and pod.preallocator)
    if not found:
        return None
    preallocator, name = found[0]
    return Hold(
        reasons.PREALLOCATES,
        f"{len(found)} of its pods hold memory whether they are busy or not (first {name}:"
        f" {preallocator}), so metric Used does not scale them: use metric EngineSignal with a"
        " metric of the server.",
    )

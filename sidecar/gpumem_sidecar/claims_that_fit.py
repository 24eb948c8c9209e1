"""Whose claims go into a report that has no room for everybody's. Pure.

What shims say is written by users' programs: one pod could claim so much that nobody else's claims
fit. So the claims of a pod go in as a whole or not at all, and those of the heaviest pods stay
out. A pod that takes no more than its even part of the room is always in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def claims_that_fit(weights: Iterable[tuple[str | None, int]], room: int) -> frozenset[str | None]:
    """The pods (None: processes of no pod) whose claims fit into `room`, by the pod and weight of
    each claim, in bytes."""
    pods: Counter[str | None] = Counter()
    for pod, weight in weights:
        pods[pod] += weight
    fitting = set()
    for pod, weight in sorted(pods.items(), key=lambda one: (one[1], one[0] or "")):
        if weight > room:
            break
        room -= weight
        fitting.add(pod)
    return frozenset(fitting)

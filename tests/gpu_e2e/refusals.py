"""Refusals that pass, as while a pod of the operator is started again: clients ask anew.

Time in which nobody answered is not counted against what a scenario waits for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from devcluster.failure import ClusterError
from gpumem_operator.kube.errors import ApiError
from patience import PATIENCE_SECONDS

REFUSED_SECONDS = 180.0
"""For so long without an answer; then it is a failure."""
PAUSE_SECONDS = 0.1
TOO_MANY_REQUESTS = 429
_PASS = (
    "failed calling webhook",
    "connection refused",
    "connection reset",
    "no endpoints available",
    "error dialing backend",
    "(ServiceUnavailable)",
    "(Timeout)",
    "(ServerTimeout)",
    "(TooManyRequests)",
    "(InternalError)",
    "i/o timeout",
    "TLS handshake timeout",
    "deadline exceeded",
    "etcdserver:",
)
"""What kubectl prints of them."""
T = TypeVar("T")


class NotSeenError(Exception):
    """Something that a scenario waited for did not happen."""


def passes(error: Exception) -> bool:
    """Whether the same question may have an answer a little later."""
    if isinstance(error, ApiError):
        return error.status in (0, TOO_MANY_REQUESTS) or error.status >= 500
    return isinstance(error, ClusterError) and any(text in str(error) for text in _PASS)


def answered(ask: Callable[[], T], *, seconds: float = REFUSED_SECONDS) -> T:
    """The answer, asked for until there is one. Raises what was refused for too long."""
    return _answered(ask, seconds)[0]


def _answered(ask: Callable[[], T], seconds: float = REFUSED_SECONDS) -> tuple[T, float]:
    """With the seconds in which there was none."""
    first: float | None = None
    while True:
        now = time.monotonic()
        try:
            return ask(), 0.0 if first is None else now - first
        except (ApiError, ClusterError) as error:
            first = now if first is None else first
            if not passes(error) or now - first > seconds:
                raise
        time.sleep(PAUSE_SECONDS)


def settled(
    look: Callable[[], T], wanted: Callable[[T], bool], *, seconds: float = PATIENCE_SECONDS
) -> T:
    """What is seen once it is as wanted; what is seen in the end where it never is."""
    deadline = time.monotonic() + seconds
    while True:
        found, refused = _answered(look)
        deadline += refused
        if wanted(found) or time.monotonic() > deadline:
            return found
        time.sleep(PAUSE_SECONDS)


def until(look: Callable[[], T | None], what: str, *, seconds: float = PATIENCE_SECONDS) -> T:
    """The first answer that is neither None nor false. Raises NotSeenError."""
    if not (found := settled(look, bool, seconds=seconds)):
        raise NotSeenError(f"{what}: not within {seconds:.0f} s")
    return found

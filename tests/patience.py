"""How long tests wait for what is to happen: on a machine at work, so long that it never will."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")
PATIENCE_SECONDS: Final = 180.0
WAIT: Final = f"--timeout={PATIENCE_SECONDS:.0f}s"
"""The same for `kubectl wait`."""


def eventually(look: Callable[[], T | None], *, pause_seconds: float = 0.2) -> T:
    """What `look` finds, once it finds something: for what nothing announces."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS:.0f} s"
        time.sleep(pause_seconds)
    return found

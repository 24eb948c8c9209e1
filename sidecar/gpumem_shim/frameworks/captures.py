"""Counts CUDA graph captures that are under way in any thread.

While one is, nothing may be freed on the device: cudaFree breaks a capture, whichever thread it is
called in. Frameworks tell whether the current stream of the current thread captures, and no more.
"""

from __future__ import annotations

import functools
from _thread import RLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Captures:
    """`begins` and `ends` wrap the methods of a framework that begin and end a capture."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._open: set[int] = set()
        """By the id of the graph or stream: some releases end one in two steps."""

    @property
    def under_way(self) -> bool:
        return bool(self._open)

    def unless_capturing(self, work: Callable[[], object]) -> bool:
        """Do the work while no capture can begin; False where one is under way already."""
        with self._lock:
            if self._open:
                return False
            work()
            return True

    def begins(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def begin(captured: Any, *args: Any, **kwargs: Any) -> Any:
            with self._lock:
                self._open.add(id(captured))
            try:
                return method(captured, *args, **kwargs)
            except BaseException:
                self._close(captured)
                raise

        return begin

    def ends(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def end(captured: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return method(captured, *args, **kwargs)
            finally:
                self._close(captured)

        return end

    def _close(self, captured: object) -> None:
        with self._lock:
            self._open.discard(id(captured))

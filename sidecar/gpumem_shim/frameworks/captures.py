"""Counts CUDA graph captures that are under way in any thread.

While one is, nothing may be freed on the device: cudaFree breaks a capture, whichever thread it is
called in. Frameworks tell whether the current stream of the current thread captures, and no more.
"""

from __future__ import annotations

import functools
import weakref
from _thread import RLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Captures:
    """`begins` and `ends` wrap the methods of a framework that begin and end a capture."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._open: dict[int, Callable[[], object]] = {}
        """The graph or stream by its id: some releases end one in two steps. None where it is
        gone, and nobody can go on with its capture."""

    @property
    def under_way(self) -> bool:
        return any(captured() is not None for captured in list(self._open.values()))

    def unless_capturing(self, work: Callable[[], object]) -> bool:
        """Do the work while no capture can begin; False where one is under way already."""
        with self._lock:
            if self.under_way:
                return False
            work()
            return True

    def begins(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def begin(captured: Any, *args: Any, **kwargs: Any) -> Any:
            with self._lock:
                self._open[id(captured)] = _while_there(captured)
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
            self._open.pop(id(captured), None)


def _while_there(captured: object) -> Callable[[], object]:
    try:
        return weakref.ref(captured)
    except TypeError:
        # One of an extension that can not be looked after: its end has to be told.
        return lambda: True

"""Asking something that may never answer, without waiting for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Patient(Generic[Answer]):
    """Calls a function in one thread of its own and waits at most `seconds` for the answer.

    A driver in trouble holds a call in the kernel, where nothing can end it. One thread is then
    stuck and no more: until that call is over nobody is asked again, and its late answer, which
    tells of the past, is dropped.
    """

    def __init__(self, function: Callable[[], Answer], seconds: float) -> None:
        self._function = function
        self._seconds = seconds
        self._changed = threading.Condition()
        self._busy = False
        self._answer: Answer | None = None
        self._thread: threading.Thread | None = None

    def ask(self) -> Answer | None:
        """The answer to this very question, or None where it did not come in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._busy, self._seconds):
                return None
            if self._thread is None:
                # A daemon: the process must be able to end while it is stuck.
                self._thread = threading.Thread(target=self._work, daemon=True, name="patient")
                self._thread.start()
            self._answer, self._busy = None, True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._busy, self._seconds)
            return None if self._busy else self._answer

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._busy)
            answer = self._function()
            with self._changed:
                self._answer, self._busy = answer, False
                self._changed.notify_all()

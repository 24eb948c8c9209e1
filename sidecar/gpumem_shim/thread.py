"""The thread that measures, moves the caps and answers orders. It starts with CUDA.

A process that never touches a GPU has no thread: importing a framework is not enough. It is none of
`threading`'s: programs wait for all of those to end, or trace them, and this one is not theirs.
"""

from __future__ import annotations

import _thread
import atexit
import os
import threading  # noqa: F401 (Python takes the thread that imports it first for the main one)

from gpumem_shim import faults, state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gpumem_shim.process import Process

SECONDS = 1.0
"""Between looks for an order, and at what changes."""
LONGEST_SECONDS = 5.0
"""Between looks at what does not change: a look takes the interpreter from the program."""
FIRST_SECONDS = 0.1
FIRST_ROUNDS = 20
"""The context, libraries and workspaces come in the first seconds."""


class _Thread:
    """The one that is at work, in the process that it belongs to: a forked child has none."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.identifier = _thread.get_ident()
        self.end = _thread.allocate_lock()
        """Released by whoever wants it to end."""
        self.ended = _thread.allocate_lock()
        self.end.acquire()
        self.ended.acquire()


_running: _Thread | None = None


def start(process: Process) -> None:
    """Start it, once in each process. Where no thread can be had, the next call tries again."""
    if _own() is not None or not _may_run():
        return
    # Frameworks take themselves apart at the end, and must not be asked meanwhile. Once, however
    # often no thread could be had.
    atexit.unregister(_stop)
    atexit.register(_stop)
    with faults.kept:
        _thread.start_new_thread(_run, (process,))


def is_ours() -> bool:
    """Whether the caller runs in it."""
    own = _own()
    return own is not None and own.identifier == _thread.get_ident()


def _own() -> _Thread | None:
    return _running if _running is not None and _running.pid == os.getpid() else None


def _may_run() -> bool:
    # A subinterpreter may forbid threads that nobody waits for: its end would be an abort.
    allowed = getattr(_thread, "daemon_threads_allowed", None)
    return allowed is None or bool(allowed())


def _run(process: Process) -> None:
    global _running
    # Held by whoever started it, who may have started two.
    with state.lock():
        if _own() is not None:
            return
        running = _running = _Thread()
    try:
        _look(process, running.end)
    finally:
        running.ended.release()


def _stop() -> None:
    own = _own()
    if own is not None:
        if own.end.locked():
            own.end.release()
        if own.ended.acquire(timeout=SECONDS):
            own.ended.release()


def _look(process: Process, end: _thread.LockType) -> None:
    """Again and again, until `end` is released."""
    from gpumem_shim import reclaim

    rounds, wait, since = 0, FIRST_SECONDS, 0.0
    while True:
        period = FIRST_SECONDS if rounds < FIRST_ROUNDS or process.watching else SECONDS
        if end.acquire(timeout=period):
            return
        rounds += 1
        since += period
        try:
            if since < wait:
                process.notice()
            else:
                since = 0.0
                changed = process.refresh()
                wait = _next_wait(wait, rounds=rounds, changed=changed)
        except Exception:
            # The program has a framework that is not as we know it. It is told what is known.
            since = 0.0
        try:
            reclaim.answer(process)
        except Exception:
            continue


def _next_wait(wait: float, *, rounds: int, changed: bool) -> float:
    """Seconds until the next look at what is held."""
    if rounds < FIRST_ROUNDS:
        return FIRST_SECONDS
    return SECONDS if changed else min(max(SECONDS, 2 * wait), LONGEST_SECONDS)

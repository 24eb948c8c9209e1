"""The thread that measures, moves the caps and answers orders. It starts with CUDA.

A process that never touches a GPU has no thread: importing a framework is not enough.
"""

from __future__ import annotations

import atexit
import os
import threading

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

NAME = "gpumem-shim"

_running: tuple[int, threading.Event] | None = None


def start(process: Process) -> None:
    """Start it, once in each process. Called with the lock held."""
    global _running
    if _running is not None and _running[0] == os.getpid():
        return
    end = threading.Event()
    _running = os.getpid(), end
    thread = threading.Thread(target=_run, args=(process, end), name=NAME, daemon=True)
    # Frameworks take themselves apart at the end, and must not be asked meanwhile.
    atexit.register(_stop, thread, end)
    thread.start()


def is_ours() -> bool:
    """Whether the caller runs in it."""
    return threading.current_thread().name == NAME


def _run(process: Process, end: threading.Event) -> None:
    from gpumem_shim import reclaim

    rounds, wait, since = 0, FIRST_SECONDS, 0.0
    while True:
        period = FIRST_SECONDS if rounds < FIRST_ROUNDS or process.watching else SECONDS
        if end.wait(period):
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


def _stop(thread: threading.Thread, end: threading.Event) -> None:
    end.set()
    if thread.is_alive():
        thread.join(SECONDS)

"""Signals that ask a process to end, as something that can be waited for."""

from __future__ import annotations

import signal
import socket


def termination_signals() -> socket.socket:
    """A socket that becomes readable on SIGTERM and SIGINT, which no longer end the process."""
    readable, writable = socket.socketpair()
    writable.setblocking(False)
    signal.set_wakeup_fd(writable.detach())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return readable

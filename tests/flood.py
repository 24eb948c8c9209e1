"""Somebody who opens connections without end and never says a word on any of them."""

from __future__ import annotations

import resource
import socket
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from patience import PATIENCE_SECONDS


@contextmanager
def silent_connections(port: int, *, held: int, source: str = "127.0.0.1") -> Iterator[None]:
    """Hold the last `held` connections and open new ones all the time, until the block ends.

    The block begins when so many have been opened.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, held + 1000)), hard))
    full, stop = threading.Event(), threading.Event()
    connections: deque[socket.socket] = deque()
    thread = threading.Thread(target=_open, args=(port, source, held, connections, full, stop))
    thread.start()
    try:
        assert full.wait(PATIENCE_SECONDS), f"only {len(connections)} connections were opened"
        yield
    finally:
        stop.set()
        thread.join()
        for each in connections:
            each.close()


def _open(
    port: int,
    source: str,
    held: int,
    connections: deque[socket.socket],
    full: threading.Event,
    stop: threading.Event,
) -> None:
    while not stop.is_set():
        each = socket.socket()
        each.settimeout(5)
        # Otherwise the ports of a machine run out.
        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        try:
            each.bind((source, 0))
            each.connect(("127.0.0.1", port))
        except OSError:
            each.close()
            continue
        connections.append(each)
        if len(connections) > held:
            connections.popleft().close()
            full.set()
            # Some hundred each second from here on.
            stop.wait(0.002)

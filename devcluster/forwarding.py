"""Bytes between two sockets, and the first of several ports that takes a connection."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterable

CHUNK_BYTES = 65536


def connect_first(ports: Iterable[int]) -> socket.socket | None:
    """A connection to the first of these ports of 127.0.0.1 that takes it; None where none does."""
    for port in ports:
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection(("127.0.0.1", port))
    return None


def forward(one: socket.socket, other: socket.socket) -> None:
    """Pass bytes on in both directions until one end closes. Raises OSError where it breaks."""
    peers = {one: other, other: one}
    while True:
        for readable in select.select(list(peers), [], [])[0]:
            chunk = readable.recv(CHUNK_BYTES)
            if not chunk:
                return
            peers[readable].sendall(chunk)

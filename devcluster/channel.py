"""JSON messages, one a line, between a keeper and its caller."""

from __future__ import annotations

import json
import socket
from typing import Any


class Channel:
    """One end of the conversation. Its end of file is a message too: the other side is gone."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._received = b""

    def fileno(self) -> int:
        return self._connection.fileno()

    def send(self, message: dict[str, Any]) -> None:
        """Raises BrokenPipeError when the other side is gone."""
        self._connection.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> dict[str, Any] | None:
        """The next message; None when the other side is gone."""
        while b"\n" not in self._received:
            try:
                chunk = self._connection.recv(65536)
            except ConnectionResetError:
                return None
            if not chunk:
                return None
            self._received += chunk
        line, _, self._received = self._received.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        self._connection.close()

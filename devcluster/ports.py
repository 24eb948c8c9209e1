"""Ports that nobody else can take between being chosen and being used."""

from __future__ import annotations

import socket


class HeldPort:
    """A free port of 127.0.0.1 that stays ours, also while no server listens on it.

    Choosing a free port and handing its number to a server leaves a gap in which another
    process may take it, and a server that restarts leaves such a gap again. A bound socket that
    never listens closes the gap: the kernel gives its port to nobody else and sends it no
    connection, while a server of the same user that also sets SO_REUSEPORT may listen there
    (etcd's --socket-reuse-port, the apiserver's --permit-port-sharing).
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]

    def close(self) -> None:
        self._socket.close()

"""What a Service is to pods: one address in front of several processes."""

from __future__ import annotations

import contextlib
import itertools
import select
import socket
import socketserver
import threading
from collections.abc import Sequence

CHUNK_BYTES = 65536


class Balancer(socketserver.ThreadingTCPServer):
    """Forwards each connection to one of the backends in turn, skipping those that refuse it.

    As with kube-proxy, connections that exist stay where they are, and TLS passes through unread.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port: int, backends: Sequence[int], *, host: str = "127.0.0.1") -> None:
        """Listen at once at an address of this machine; the backends are on 127.0.0.1."""
        super().__init__((host, port), _Connection)
        self._backends = backends
        self._turn = itertools.count()
        threading.Thread(target=self.serve_forever, name="balancer", daemon=True).start()

    def connect(self) -> socket.socket:
        """A connection to the next backend that takes it. Raises ConnectionRefusedError."""
        first = next(self._turn)
        for offset in range(len(self._backends)):
            backend = self._backends[(first + offset) % len(self._backends)]
            with contextlib.suppress(ConnectionRefusedError):
                return socket.create_connection(("127.0.0.1", backend))
        raise ConnectionRefusedError(f"none of the ports {list(self._backends)} answers")

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Connection(socketserver.BaseRequestHandler):
    server: Balancer
    request: socket.socket

    def handle(self) -> None:
        # A caller or a backend that goes away in the middle is what this is here to survive.
        with contextlib.suppress(ConnectionError), self.server.connect() as backend:
            peers = {self.request: backend, backend: self.request}
            while True:
                for readable in select.select(list(peers), [], [])[0]:
                    chunk = readable.recv(CHUNK_BYTES)
                    if not chunk:
                        return
                    peers[readable].sendall(chunk)

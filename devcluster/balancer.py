"""What a Service is to pods: one address in front of several processes."""

from __future__ import annotations

import contextlib
import itertools
import socket
import socketserver
import threading
from collections.abc import Sequence

from devcluster.forwarding import connect_first, forward


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
        first, number = next(self._turn), len(self._backends)
        backend = connect_first(self._backends[(first + n) % number] for n in range(number))
        if backend is None:
            raise ConnectionRefusedError(f"none of the ports {list(self._backends)} answers")
        return backend

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Connection(socketserver.BaseRequestHandler):
    server: Balancer
    request: socket.socket

    def handle(self) -> None:
        # A caller or a backend that goes away in the middle is what this is here to survive.
        with contextlib.suppress(ConnectionError), self.server.connect() as backend:
            forward(self.request, backend)

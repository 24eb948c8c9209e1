"""The plain HTTP endpoint that kubelet probes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

POLL_SECONDS = 0.1
"""How soon the server notices that it is to end."""
CLIENT_SECONDS = 5.0
"""How long a client may take for its request."""


class _Handler(BaseHTTPRequestHandler):
    timeout = CLIENT_SECONDS

    def do_GET(self) -> None:
        found = self.path == "/healthz"
        body = b"ok\n" if found else b"not found: only /healthz is served\n"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """A probe every few seconds is not worth a line."""


class _Server(ThreadingHTTPServer):
    # A client that says nothing must not hold up the end of the pod.
    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int) -> None:
        both = socket.has_dualstack_ipv6()
        self.address_family = socket.AF_INET6 if both else socket.AF_INET
        super().__init__(("::" if both else "0.0.0.0", port), _Handler)

    def server_bind(self) -> None:
        # Every address of the pod, of both families where there are two. Not the base class's,
        # which also asks the name service for the host's name.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()


@contextmanager
def serve(port: int) -> Iterator[int]:
    """Serve in a thread until the block ends; yields the port. Raises OSError where it is taken."""
    with _Server(port) as server:
        thread = threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,), daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()

"""The plain HTTP endpoint that kubelet probes.

By hand and not `http.server`, which costs every GPU pod 1.3 MiB more for the same two answers.
"""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

CLIENT_SECONDS = 5.0
"""How long a client may take for its request."""
MOST_CLIENTS = 8
"""At once, each with a thread; one more ends the oldest."""
LONGEST_LINE = 4096
MOST_LINES = 100


class _Handler(socketserver.StreamRequestHandler):
    timeout = CLIENT_SECONDS
    server: _Server

    def handle(self) -> None:
        try:
            path = self._path()
            status, body = self._answer(path)
            self.wfile.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()
            )
        except OSError:
            return  # a client that went away or said nothing

    def _path(self) -> str:
        """Read the whole request, or closing the socket would destroy the answer on its way."""
        end = time.monotonic() + CLIENT_SECONDS
        words = self.rfile.readline(LONGEST_LINE).split()
        for _ in range(MOST_LINES):
            if time.monotonic() > end or self.rfile.readline(LONGEST_LINE).strip() == b"":
                break
        return words[1].decode("latin-1") if len(words) > 1 else ""

    def _answer(self, path: str) -> tuple[str, str]:
        if path != "/healthz":
            return "404 Not Found", "not found: only /healthz is served\n"
        if self.server.is_healthy():
            return "200 OK", "ok\n"
        return "503 Service Unavailable", "NVML has not answered for too long\n"


class _Server(socketserver.ThreadingTCPServer):
    # A client that says nothing must not hold up the end of the pod.
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, port: int, is_healthy: Callable[[], bool]) -> None:
        self.is_healthy = is_healthy
        self.is_ended = False
        self.clients: deque[socket.socket] = deque()
        both = socket.has_dualstack_ipv6()
        self.address_family = socket.AF_INET6 if both else socket.AF_INET
        super().__init__(("::" if both else "0.0.0.0", port), _Handler)

    def server_bind(self) -> None:
        # Every address of the pod, of both families where there are two.
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.clients.append(request)
        if len(self.clients) > MOST_CLIENTS:
            with suppress(IndexError, OSError):
                # Its thread finds the end of the request, and ends too.
                self.clients.popleft().shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def close_request(self, request: Any) -> None:
        with suppress(ValueError):
            self.clients.remove(request)
        super().close_request(request)


@contextmanager
def serve(port: int, is_healthy: Callable[[], bool]) -> Iterator[int]:
    """Serve in a thread until the block ends; yields the port. Raises OSError where it is taken."""
    with _Server(port, is_healthy) as server:
        thread = threading.Thread(target=_serve, args=(server,), daemon=True, name="health")
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.is_ended = True
            # Wakes the thread; `serve_forever` would look at the clock all the time instead.
            server.socket.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(server: _Server) -> None:
    while not server.is_ended:
        server.handle_request()

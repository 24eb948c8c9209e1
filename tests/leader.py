"""A leader that takes reports over real HTTPS and answers what a test tells it to."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from devcluster.pki import Authority
from patience import PATIENCE_SECONDS


class Said(NamedTuple):
    """One request."""

    report: Any
    headers: Mapping[str, str]
    connection: int
    """Port of the client: the same one is the same connection."""
    path: str


class Reply(NamedTuple):
    """One answer; `after` is called before it is given."""

    status: int = 200
    body: Any = MappingProxyType({"schemaVersion": 1, "limits": [], "orders": []})
    headers: Mapping[str, str] = MappingProxyType({})
    after: Callable[[], object] | None = None


def answer(**fields: Any) -> Reply:
    return Reply(200, {"schemaVersion": 1} | fields)


class Leader:
    """Listens from construction to `end`; what it answers is `replies` in turn, then 200."""

    def __init__(self, folder: Path, authority: Authority, *, port: int = 0) -> None:
        self.said: list[Said] = []
        self.replies: list[Reply] = []
        self._changed = threading.Condition()
        authority.server("leader", dns=[], addresses=["127.0.0.1"]).write(folder, "leader")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "leader.crt", folder / "leader.key")
        self._server = _Server(("127.0.0.1", port), self)
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/v1/reports"

    def wait_for(self, number: int) -> list[Said]:
        """What was said, once there are so many."""
        return self.wait_until(lambda said: len(said) >= number)

    def wait_until(self, condition: Callable[[list[Said]], bool]) -> list[Said]:
        with self._changed:
            done = self._changed.wait_for(lambda: condition(self.said), PATIENCE_SECONDS)
            assert done, f"it did not come to that; said so far: {self.said}"
            return list(self.said)

    def end(self) -> None:
        """Also of its connections."""
        self._server.shutdown()
        self._server.close_connections()
        self._server.server_close()
        self._thread.join()

    def reply_to(self, said: Said) -> Reply:
        with self._changed:
            self.said.append(said)
            self._changed.notify_all()
            return self.replies.pop(0) if self.replies else Reply()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        said = Said(json.loads(body), dict(self.headers), self.client_address[1], self.path)
        reply = self.server.leader.reply_to(said)
        if reply.after is not None:
            reply.after()
        content = (
            reply.body
            if isinstance(reply.body, bytes)
            else json.dumps(reply.body, default=dict).encode()
        )
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None: ...


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], leader: Leader) -> None:
        super().__init__(address, _Handler)
        self.leader = leader
        self._open: set[Any] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def close_connections(self) -> None:
        for request in self._open:
            # Closing alone would leave it open for the thread that reads from it.
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None: ...


@contextmanager
def leading(folder: Path, authority: Authority, *, port: int = 0) -> Iterator[Leader]:
    leader = Leader(folder, authority, port=port)
    try:
        yield leader
    finally:
        leader.end()

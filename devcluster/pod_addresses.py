"""Addresses of pods for a cluster without nodes: where the API server's own proxy leads.

The API server takes no loopback address for a pod's, and putting another address on this machine
takes root and is seen by others. So it is told to reach pods through a tunnel (an egress selector),
and this process is at the other end: connections to an address that stands for a pod lead to ports
of 127.0.0.1, and to any other address nowhere.

    with PodAddresses(folder) as pods:
        cluster = Cluster.start(apiserver_flags=pods.apiserver_flags)
        pods.lead("198.51.100.7", 9443, to=installation.report_ports)
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from devcluster.forwarding import CHUNK_BYTES, connect_first, forward

LONGEST_REQUEST = 8192


class PodAddresses:
    """The other end of the API server's tunnel, from construction to the end of the block."""

    def __init__(self, folder: Path) -> None:
        """`folder` is there, and keeps a socket and a file as long as the API server runs."""
        self._file = folder / "egress.json"
        path = folder / "egress.sock"
        self._file.write_text(json.dumps(_configuration(path)))
        self._server = _Server(path)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def apiserver_flags(self) -> list[str]:
        return [f"--egress-selector-config-file={self._file}"]

    def lead(self, address: str, port: int, *, to: Sequence[int]) -> None:
        """From now on connections to a pod's port lead to the first of these that takes them."""
        self._server.backends[f"{address}:{port}"] = to

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _configuration(path: Path) -> dict[str, object]:
    """Of kube-apiserver: what leads to nodes, pods and Services goes through the socket."""
    connection = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": str(path)}}}
    return {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), _Tunnel)
        self.backends: dict[str, Sequence[int]] = {}


class _Tunnel(socketserver.BaseRequestHandler):
    server: _Server
    request: socket.socket

    def handle(self) -> None:
        # Whoever goes away in the middle is no fault.
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            backend = connect_first(self.server.backends.get(_target(self.request), ()))
            if backend is None:
                self.request.sendall(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
                return
            stack.enter_context(backend)
            self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            forward(self.request, backend)


def _target(request: socket.socket) -> str:
    """`198.51.100.7:9443` of `CONNECT 198.51.100.7:9443 HTTP/1.1`; empty for anything else."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < LONGEST_REQUEST:
        chunk = request.recv(CHUNK_BYTES)
        if not chunk:
            break
        head += chunk
    words = head.decode(errors="replace").split(" ")
    return words[1] if words[0] == "CONNECT" and len(words) > 1 else ""

"""An address of its own, as a pod would have one, and an engine that tells its metric there."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ADDRESS = "10.213.77.1"
_BRIDGE = "gpumem-engines"


class Engine(ThreadingHTTPServer):
    """Tells `value` as vLLM would."""

    daemon_threads = True
    value = "0.8"

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Page(BaseHTTPRequestHandler):
    server: Engine

    def do_GET(self) -> None:
        page = f'vllm:kv_cache_usage_perc{{engine="0"}} {self.server.value}\n'.encode()
        self.send_response(200 if self.path == "/metrics" else 404)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def engine() -> Iterator[Engine]:
    """Takes root: a bridge that leads nowhere has the address."""
    subprocess.run(["ip", "link", "add", _BRIDGE, "type", "bridge"], check=True)
    try:
        subprocess.run(["ip", "address", "add", f"{ADDRESS}/32", "dev", _BRIDGE], check=True)
        with Engine((ADDRESS, 0), _Page) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.05,))
            thread.start()
            try:
                yield server
            finally:
                server.shutdown()
                thread.join()
    finally:
        subprocess.run(["ip", "link", "delete", _BRIDGE], check=True)

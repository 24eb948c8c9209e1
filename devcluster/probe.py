"""Asks an apiserver whether it is ready, with nothing but the standard library."""

from __future__ import annotations

import http.client
import ssl
from pathlib import Path

REQUEST_SECONDS = 5.0


class Probe:
    """GET requests to one apiserver as its administrator."""

    def __init__(self, port: int, pki: Path) -> None:
        self._port = port
        self._tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")

    def succeeds(self, path: str) -> bool:
        """Whether the apiserver answers `path` with 200; False also when nobody listens."""
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._port, timeout=REQUEST_SECONDS, context=self._tls
        )
        try:
            connection.request("GET", path)
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

"""The connection to the leader: one POST after another over one TLS connection that stays open."""

from __future__ import annotations

import http.client
import os
import re
from typing import NamedTuple
from urllib.parse import urlsplit

from gpumem_sidecar.trust import Trust

TIMEOUT_SECONDS = 10.0
"""For connecting, and for each step of an exchange."""
LARGEST_ANSWER = 4 * 1024 * 1024
LARGEST_TOKEN = 64 * 1024
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")


class Reply(NamedTuple):
    """What came back."""

    status: int
    body: bytes
    retry_after_seconds: float | None = None


class Channel:
    """Not for several threads at once. The token is read for every report, because it rotates."""

    def __init__(self, url: str, trust: Trust, token_file: str) -> None:
        """Raises ValueError for an address that can not be used."""
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname:
            raise ValueError(f"{url!r} is no https:// address")
        self._host, self._port = parts.hostname, parts.port or 443
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._trust = trust
        self._token_file = token_file
        self._connection: http.client.HTTPSConnection | None = None

    def post(self, body: bytes) -> Reply:
        """Raises OSError or HTTPException where no whole answer came; the connection is closed
        then, and after every answer that is no success: another leader may be found by the next.
        """
        headers = {
            "Authorization": f"Bearer {self._token()}",
            "Content-Type": "application/json",
        }
        reused = self._connection is not None
        try:
            reply = self._exchange(body, headers)
        except (ConnectionError, http.client.BadStatusLine):
            self.close()
            if not reused:
                raise
            # Only an idle connection that the other side had closed meanwhile: no news of it.
            reply = self._exchange(body, headers)
        if not 200 <= reply.status < 300:
            self.close()
        return reply

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, body: bytes, headers: dict[str, str]) -> Reply:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=TIMEOUT_SECONDS, context=self._trust.context()
            )
        try:
            self._connection.request("POST", self._path, body, headers)
            response = self._connection.getresponse()
            content = response.read(LARGEST_ANSWER + 1)
        except BaseException:
            self.close()
            raise
        if len(content) > LARGEST_ANSWER:
            self.close()
            raise http.client.HTTPException(f"an answer of more than {LARGEST_ANSWER} bytes")
        return Reply(response.status, content, _seconds(response.headers.get("Retry-After")))

    def _token(self) -> str:
        descriptor = os.open(self._token_file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            token = os.read(descriptor, LARGEST_TOKEN).decode("latin-1").strip()
        finally:
            os.close(descriptor)
        # Checked here, because the error of http.client would print it.
        if not _TOKEN.fullmatch(token):
            raise OSError(f"{self._token_file} holds no token")
        return token


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdecimal() and len(text) < 6 else None

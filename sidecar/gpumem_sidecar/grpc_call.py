"""One gRPC question over a Unix socket, for an answer that comes at once and whole.

On h2, a state machine for HTTP/2: grpcio would take 11 MiB more of each node's memory. Source of
the protocol: "gRPC over HTTP2" (PROTOCOL-HTTP2.md of gRPC).
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError

LARGEST_ANSWER = 16 * 1024 * 1024
"""Bytes; as much as the kubelet takes itself (defaultPodResourcesMaxSize)."""
_CHUNK = 64 * 1024
_PREFIX = struct.Struct(">?I")
"""Before each message: whether it is compressed, and its length."""
_EMPTY_MESSAGE = _PREFIX.pack(False, 0)


class CallFailed(Exception):
    """There was no answer; the text says why."""


def call(path: str, method: str, seconds: float) -> bytes:
    """The message that answers the empty one; `method` is `/package.Service/Method`.

    Raises CallFailed, at the latest after so many seconds.
    """
    deadline = time.monotonic() + seconds
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(seconds)
            connection.connect(path)
            return _Exchange(connection, deadline).ask(method)
    except TimeoutError:
        raise CallFailed(f"no answer within {seconds:g} s") from None
    except OSError as error:
        raise CallFailed(f"{path}: {error.strerror or error}") from None
    except ProtocolError as error:
        raise CallFailed(f"no HTTP/2: {error}") from None


class _Exchange:
    """One connection for one question."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._ended = False

    def ask(self, method: str) -> bytes:
        self._h2.initiate_connection()
        stream = self._h2.get_next_available_stream_id()
        headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", method),
            (":authority", "localhost"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
        ]
        self._h2.send_headers(stream, headers)
        self._h2.send_data(stream, _EMPTY_MESSAGE, end_stream=True)
        self._send()
        while not self._ended:
            self._receive()
        return _message(self._headers, bytes(self._body))

    def _send(self) -> None:
        if waiting := self._h2.data_to_send():
            self._within_time(lambda: self._connection.sendall(waiting))

    def _receive(self) -> None:
        received = self._within_time(lambda: self._connection.recv(_CHUNK))
        if not received:
            raise CallFailed("the connection ended before the answer did")
        for event in self._h2.receive_data(received):
            self._take(event)
        self._send()

    def _take(self, event: Any) -> None:
        if isinstance(event, (ResponseReceived, TrailersReceived)):
            self._headers |= {str(name): str(value) for name, value in event.headers or ()}
        elif isinstance(event, DataReceived):
            self._body += event.data or b""
            if len(self._body) > LARGEST_ANSWER:
                raise CallFailed(f"an answer of more than {LARGEST_ANSWER} bytes")
            length = event.flow_controlled_length or 0
            self._h2.acknowledge_received_data(length, event.stream_id)
        elif isinstance(event, StreamEnded):
            self._ended = True
        elif isinstance(event, (StreamReset, ConnectionTerminated)):
            raise CallFailed(f"the other side broke off: HTTP/2 error {event.error_code}")

    def _within_time(self, do: Callable[[], Any]) -> Any:
        # Of the whole call: one that sends a byte now and then must not hold us for ever.
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return do()


def _message(headers: Mapping[str, str], body: bytes) -> bytes:
    if (status := headers.get(":status")) != "200":
        raise CallFailed(f"HTTP status {status}")
    if (code := headers.get("grpc-status")) != "0":
        raise CallFailed(f"gRPC status {code}: {headers.get('grpc-message', '')[:200]}")
    if len(body) < _PREFIX.size:
        raise CallFailed("no message in the answer")
    compressed, length = _PREFIX.unpack_from(body)
    if compressed or length != len(body) - _PREFIX.size:
        raise CallFailed("not one plain message in the answer")
    return body[_PREFIX.size :]

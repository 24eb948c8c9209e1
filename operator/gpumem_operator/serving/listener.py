"""A listening socket whose connections have places and deadlines, in front of an aiohttp server.

It accepts by itself, because asyncio's own servers say nothing about a connection before its TLS
handshake is over, which is when most of those are open that never want to say anything. Bytes
pass through `_Connection`, the server does the rest as always.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from gpumem_operator.serving.places import Limits, NoPlace, Place, Places, Stage
from gpumem_operator.serving.telemetry import ENDED, Why

_LOG = logging.getLogger(__name__)

_BACKLOG: Final = 1024
_ACCEPTED_AT_ONCE: Final = 32
"""Then everybody else has a turn: a flood must not stand still what it came for."""
_SWEEP_SECONDS: Final = 1.0
_SWEEPS_PER_LINE: Final = 60
"""Of the log about connections that were ended."""
_GOODBYE_SECONDS: Final = 10.0
"""For a client to take the end of an answer and of TLS."""
_OUT_OF: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Listener:
    """In front of `server`, whose runner is set up before and cleaned up after `close`."""

    def __init__(
        self,
        name: str,
        server: web.Server | None,
        *,
        limits: Limits,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """`context`: for TLS. `name`: of the listener in numbers and in the log."""
        if server is None:
            raise RuntimeError("the runner has to be set up first")
        self._name = name
        self._server = server
        self._context = context
        self._handle: Handle = server.request_handler
        server.request_handler = self._watched
        self.places = Places(limits)
        self.connections: dict[Place, _Connection] = {}
        self.by_protocol: dict[object, _Connection] = {}
        """By aiohttp's protocol."""
        self._tasks: list[asyncio.Task[None]] = []
        self._socket: socket.socket | None = None
        self._ended: Counter[Why] = Counter()
        logging.getLogger("aiohttp.server").addFilter(_is_no_fault_of_a_client)

    def start(self, host: str, port: int) -> int:
        """Listen from now on; returns the port, which is useful where `port` is 0.

        Raises OSError where the address is taken.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        self._socket.setblocking(False)
        work = self._accept(self._socket), self._sweep()
        self._tasks = [asyncio.create_task(each, name=f"{self._name} listener") for each in work]
        found: int = self._socket.getsockname()[1]
        return found

    def close(self) -> None:
        """Take no more connections; those whose handshake is not over end."""
        opening = (each.task for each in self.connections.values() if each.task)
        for task in (*self._tasks, *opening):
            task.cancel()
        if self._socket is not None:
            # Before the number of its descriptor is another's.
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for number in count(1):
            try:
                accepted, address = await loop.sock_accept(listener)
            except OSError as error:
                # Others tell of one connection that ended before we came to it.
                if error.errno in _OUT_OF:
                    _LOG.error("No connection can be accepted: %s", error)
                    await asyncio.sleep(_SWEEP_SECONDS)
                continue
            self._admit(accepted, address[0])
            if number % _ACCEPTED_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _admit(self, accepted: socket.socket, address: str) -> None:
        loop = asyncio.get_running_loop()
        try:
            place, loser = self.places.enter(address, loop.time())
        except NoPlace:
            accepted.close()
            self._count("NoPlace")
            return
        if loser is not None:
            self.end(loser, "Displaced")
        # Over TLS no transport tells that one large answer waits to be taken; the kernel knows.
        patience = int(self.places.limits.answer_seconds * 1000)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience)
        connection = self.connections[place] = _Connection(self, place, self._server)
        connection.task = loop.create_task(self._open(accepted, connection))
        connection.task.add_done_callback(lambda _: self._opened(accepted, connection))

    async def _open(self, accepted: socket.socket, connection: "_Connection") -> None:
        tls = self._context is not None
        connection.opening = True
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=self.places.limits.head_seconds if tls else None,
                ssl_shutdown_timeout=_GOODBYE_SECONDS if tls else None,
            )
        except OSError as error:  # ssl.SSLError is one
            _LOG.debug("A handshake of %s failed: %s", connection.place.address, error)

    def _opened(self, accepted: socket.socket, connection: "_Connection") -> None:
        """The handshake is over, or was given up, maybe before it began."""
        connection.task = None
        if connection.transport is None:
            self.gone(connection)
        if not connection.opening:
            # Otherwise it is the transport's, which still takes it out of the loop.
            accepted.close()

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        for number in count(1):
            await asyncio.sleep(_SWEEP_SECONDS)
            for place in self.places.overdue(loop.time()):
                if self.connections[place].is_waited_for():
                    self.end(place, "Late")
                else:
                    self.places.received(place)
            if number % _SWEEPS_PER_LINE == 0 and self._ended:
                self._tell()

    def _tell(self) -> None:
        address, most = self.places.largest_holder()
        told = ", ".join(f"{why}: {number}" for why, number in sorted(self._ended.items()))
        _LOG.warning(
            "Connections to %s were ended in the last minute (%s). %d are open, %d of them of"
            " address %s",
            *(self._name, told, len(self.places), most, address or "none"),
        )
        self._ended.clear()

    def end(self, place: Place, why: Why) -> None:
        """End a connection now, whatever it is doing."""
        self._count(why)
        self.places.leave(place)
        if (connection := self.connections.get(place)) is not None:
            connection.abort()

    def gone(self, connection: "_Connection") -> None:
        """The connection has ended."""
        self.places.leave(connection.place)
        self.connections.pop(connection.place, None)

    def _count(self, why: Why) -> None:
        self._ended[why] += 1
        ENDED.labels(self._name, why).inc()

    async def _watched(self, request: web.BaseRequest) -> web.StreamResponse:
        """The server's own handler, with what begins and ends told to the places."""
        connection = self.by_protocol.get(request.protocol)
        if connection is None:
            # The connection ended between the head and now.
            raise ConnectionResetError("the client is gone")
        connection.begin(request)
        try:
            response = await self._handle(request)
        except web.HTTPException as answer:
            answer.force_close()
            raise
        finally:
            connection.answered(request)
        if connection.is_last or len(self.places) > self.places.limits.kept:
            response.force_close()
        return response


class _Connection(asyncio.Protocol):
    """One connection, between its transport and aiohttp's protocol."""

    __slots__ = (
        "_inner",
        "_listener",
        "_request",
        "_server",
        "is_last",
        "opening",
        "place",
        "task",
        "transport",
    )

    def __init__(self, listener: Listener, place: Place, server: web.Server) -> None:
        self._listener = listener
        self._server = server
        self._inner: asyncio.Protocol | None = None
        self._request: web.BaseRequest | None = None
        self.place = place
        self.is_last = False
        """Whether the request at hand is the last one: more would be held than was counted."""
        self.opening = False
        """Whether the socket was given to a transport."""
        self.task: asyncio.Task[None] | None = None
        """Runs until the handshake is over."""
        self.transport: asyncio.Transport | None = None

    def begin(self, request: web.BaseRequest) -> None:
        self._request = request
        self._listener.places.begin(self.place, _now())

    def answered(self, request: web.BaseRequest) -> None:
        self._request = None
        unread = not request.content.is_eof()
        self.is_last = self.is_last or unread
        self._listener.places.answered(self.place, _now(), unread=unread)

    def is_waited_for(self) -> bool:
        """Whether it is the client that is late, and not the answer to it."""
        if self.place.stage is not Stage.WORKING or self._request is None:
            return True
        return not self._request.content.is_eof()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()
        elif self.task is not None:
            self.task.cancel()

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._inner = self._server()
        self._listener.by_protocol[self._inner] = self
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._listener.gone(self)
        if self._inner is not None:
            self._listener.by_protocol.pop(self._inner, None)
            self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._request is not None and self._request.content.is_eof():
            # The next request before the answer to this one: no client of ours does that.
            self.is_last = True
        heavy = self._listener.places.heard(self.place, len(data), _now())
        if heavy is not None:
            self._listener.end(heavy, "TooMuchHeld")
        if self._inner is not None and heavy is not self.place:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._inner is not None else None

    def pause_writing(self) -> None:
        self._listener.places.stalled(self.place, _now())
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._listener.places.received(self.place)
        if self._inner is not None:
            self._inner.resume_writing()


def _now() -> float:
    return asyncio.get_running_loop().time()


def _is_no_fault_of_a_client(record: logging.LogRecord) -> bool:
    """aiohttp writes a trace for each request that is not HTTP: a log that anybody can fill."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))

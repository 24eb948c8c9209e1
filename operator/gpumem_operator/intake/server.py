"""The HTTPS endpoint: reports in, answers out, and what is known for whoever may ask.

POST /v1/reports   a report of a sidecar or an agent -> 200 with an answer
GET  /v1/usage     what pods and cards hold now -> 200, for the reader's account
GET  /v1/tenants   what tenants are charged and hold now -> 200, for the reader's account

401 no valid token | 403 the token is not for this | 400 not a report | 413 too large
409 not newer than the last one | 429 too often | 503 the API server or this process is at its limit
503 as well, to everybody, while this process works on although its lease ran out

The token of a GET comes in a header of our own: the API server's proxy, through which people come,
takes the Authorization header for itself and passes on nothing that says who asked.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import orjson
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from gpumem_operator import names
from gpumem_operator.intake.answers import JSON, Refusal
from gpumem_operator.intake.bodies import Bodies
from gpumem_operator.intake.exchange import Exchange
from gpumem_operator.intake.identity import (
    CanNotAsk,
    Identities,
    Identity,
    NotAuthenticated,
    claim_in,
)
from gpumem_operator.intake.rates import Rates
from gpumem_operator.intake.senders import Accounts, NotAllowed, claimed, sender_of
from gpumem_operator.kube.serving import ServingCertificate
from gpumem_operator.metrics.intake import ANSWERS
from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.report import Answer, Limit
from gpumem_operator.reports.store import OutOfSequence, Store, TooManySenders
from gpumem_operator.serving.listener import Listener
from gpumem_operator.serving.places import Limits

_LOG = logging.getLogger(__name__)

REPORTS_PATH: Final = "/v1/reports"
USAGE_PATH: Final = "/v1/usage"
TENANTS_PATH: Final = "/v1/tenants"
LARGEST_OF_AGENT: Final = 4 * 2**20
"""Bytes: 4,096 processes with all that can be said of them."""
LARGEST_OF_SIDECAR: Final = 256 * 2**10
MOST_OF_SIDECAR: Final = 2048
"""Processes: with all that a sidecar of ours says of each, no more fit into its report."""
LIMITS: Final = Limits(
    # Each takes some 60 KiB of the 512 MiB of the chart; reports need one for some milliseconds.
    most=2000,
    # More than any node has pods, whose sidecars may all come from the node's address.
    most_of_address=500,
    most_bytes=64 * 2**20,
    kept=1000,
)
_SHUTDOWN_SECONDS: Final = 1.0

LimitsOf = Callable[[Sender], list[Limit]]


@dataclass(frozen=True)
class Documents:
    """What is known, as JSON, for whoever may ask."""

    usage: Callable[[str, str], dict[str, Any]]
    """Of a namespace and a pod by their names; empty for all."""
    tenants: Callable[[str], dict[str, Any]]
    """Of a tenant by its name; empty for all."""


class Intake:
    """Takes reports into a store while `run` runs."""

    def __init__(
        self,
        store: Store,
        identities: Identities,
        *,
        accounts: Accounts,
        limits: LimitsOf,
        exchange: Exchange,
        measured: Callable[[Sender], bool],
        expected: Callable[[Sender], bool] = lambda _: False,
        refused: Callable[[Sender], str | None] = lambda _: None,
        documents: Documents,
        lapsed: Callable[[], str | None] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`expected`: whether the cluster has such a sender. `refused`: why a sender may not report
        at all. `lapsed`: why this process is not to be asked any more; None while it leads."""
        self._store = store
        self._identities = identities
        self._accounts = accounts
        self._limits = limits
        self._exchange = exchange
        self._measured = measured
        """Whether what the sender sees is of use to anybody."""
        self._expected = expected
        self._refused = refused
        self._bodies = Bodies()
        self._documents = documents
        self._lapsed = lapsed
        self._monotonic = monotonic
        # A sender may come every 500 ms: while a pod of its is over its limit, or an order is open.
        self._senders = Rates(per_second=4, burst=20, monotonic=monotonic)
        self._largest = Rates(per_second=1 / 8, burst=4, monotonic=monotonic)
        """Senders by bytes, in reports of the largest size."""
        self._strangers = Rates(per_second=1, burst=20, monotonic=monotonic)
        """Addresses by bad tokens."""
        self._claimants = Rates(per_second=1 / 5, burst=3, monotonic=monotonic)
        """Expected senders at such addresses, by tokens that are not known yet."""
        self.port = 0
        """Where it listens, once `listening` is set."""
        self.listening = asyncio.Event()

    async def run(self, host: str, port: int, certificate: ServingCertificate) -> None:
        """Serve for ever, from when there is a certificate. Raises OSError for a taken address."""
        await certificate.loaded.wait()
        runner = web.AppRunner(
            self.application(),
            access_log=None,
            shutdown_timeout=_SHUTDOWN_SECONDS,
            keepalive_timeout=75,
            max_line_size=2048,
            max_field_size=12 * 2**10,
            max_headers=64,
        )
        await runner.setup()
        listener = Listener("reports", runner.server, limits=LIMITS, context=certificate.context)
        try:
            self.port = listener.start(host, port)
            self.listening.set()
            _LOG.info("Reports are taken in at port %d", self.port)
            await asyncio.Event().wait()
        finally:
            self.listening.clear()
            listener.close()
            await runner.cleanup()

    def application(self) -> web.Application:
        """The endpoint, to be served by someone."""
        application = web.Application(middlewares=[self._answer])
        application.on_cleanup.append(self._close)
        application.add_routes(
            [
                web.post(REPORTS_PATH, self._report),
                web.get(USAGE_PATH, self._usage),
                web.get(TENANTS_PATH, self._tenants),
            ]
        )
        return application

    async def _close(self, _: web.Application) -> None:
        self._bodies.close()

    @web.middleware
    async def _answer(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """Every answer, whatever happens."""
        try:
            self._refuse_if_lapsed()
            response = await handler(request)
            # It may have been stopped in between, and this answer be from before.
            self._refuse_if_lapsed()
        except Refusal as refusal:
            response = refusal.response()
        except web.HTTPException as error:
            response = Refusal(error.status, error.reason).response()
        except Exception:
            _LOG.exception("A request to %s failed", request.path)
            response = Refusal(500, "this is a fault of the operator; its log says more").response()
        ANSWERS.labels(str(response.status)).inc()
        return response

    def _refuse_if_lapsed(self) -> None:
        if (why := self._lapsed()) is not None:
            raise Refusal(503, f"{why}: ask again, another process leads", retry_seconds=1)

    async def _report(self, request: web.Request) -> web.Response:
        began = self._monotonic()
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        identity = await self._identify(request, token if kind == "Bearer" else "")
        key = identity.pod_uid or identity.user
        if not self._senders.allow(key):
            raise Refusal(429, "more than 4 reports per second", retry_seconds=1)
        agent = identity.user == self._accounts.agent
        largest = LARGEST_OF_AGENT if agent else LARGEST_OF_SIDECAR
        body = await _body(request, largest)
        if not self._largest.allow(key, len(body) / largest):
            raise Refusal(429, f"more than {largest // 8} bytes per second", retry_seconds=8)
        report = await self._bodies.read(body, largest)
        if not agent and len(report.processes) > MOST_OF_SIDECAR:
            raise Refusal(413, f"{len(report.processes)} processes are more than {MOST_OF_SIDECAR}")
        try:
            sender = sender_of(identity, report, self._accounts)
            if (why := self._refused(sender)) is not None:
                raise NotAllowed(why)
            keep = self._measured(sender)
            whole = self._store.take(sender, report, began, keep=keep)
        except NotAllowed as error:
            raise Refusal(403, str(error)) from None
        except OutOfSequence as error:
            raise Refusal(409, str(error)) from None
        except TooManySenders as error:
            raise Refusal(503, str(error), retry_seconds=30) from None
        wanted = self._exchange(sender, report.acknowledgements)
        answer = Answer(
            next="Any" if whole else "Full",
            urgent=wanted.urgent,
            limits=self._limits(sender),
            orders=wanted.orders,
        )
        return web.Response(body=answer.model_dump_json(by_alias=True).encode(), content_type=JSON)

    async def _usage(self, request: web.Request) -> web.Response:
        await self._admit_reader(request)
        query = request.query
        return _json(self._documents.usage(query.get("namespace", ""), query.get("pod", "")))

    async def _tenants(self, request: web.Request) -> web.Response:
        await self._admit_reader(request)
        return _json(self._documents.tenants(request.query.get("tenant", "")))

    async def _admit_reader(self, request: web.Request) -> None:
        identity = await self._identify(request, request.headers.get(names.READER_HEADER, ""))
        if not self._accounts.reader or identity.user != self._accounts.reader:
            raise Refusal(403, f"{identity.user} is not the reader's account")
        if not self._senders.allow(("reader", identity.user)):
            raise Refusal(429, "more than 4 questions per second", retry_seconds=1)

    async def _identify(self, request: web.Request, token: str) -> Identity:
        address = request.remote or ""
        if self._strangers.spent(address) and not self._may_be_expected(address, token):
            raise Refusal(429, "too many bad tokens from this address", retry_seconds=5)
        try:
            return await self._identities.of(token)
        except NotAuthenticated as error:
            self._strangers.allow(address)
            raise Refusal(401, str(error)) from None
        except CanNotAsk as error:
            _LOG.warning("A token could not be looked at: %s", error)
            text = "the API server could not be asked about the token"
            raise Refusal(503, text, retry_seconds=2) from None

    def _may_be_expected(self, address: str, token: str) -> bool:
        """Whether a token of an address with many bad ones is looked at all the same."""
        if self._identities.familiar(token):
            return True
        claim = claim_in(token)
        if claim is None:
            return False
        if claim.user and claim.user == self._accounts.reader:
            return self._claimants.allow((address, claim.user))
        sender = claimed(claim, self._accounts)
        return self._expected(sender) and self._claimants.allow((address, sender))


def _json(document: dict[str, Any]) -> web.Response:
    return web.Response(body=orjson.dumps(document), content_type=JSON)


async def _body(request: web.Request, largest: int) -> bytes:
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise Refusal(415, "Content-Encoding is not supported: send the report as it is")
    too_large = Refusal(413, f"more than {largest} bytes")
    if (request.content_length or 0) > largest:
        raise too_large
    body = bytearray()
    try:
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > largest:
                raise too_large
    except (aiohttp.ClientError, HttpProcessingError, web.RequestPayloadError, ConnectionError):
        raise Refusal(400, "the body broke off") from None
    return bytes(body)

"""The TLS server that the API server calls, in the form in which kopf takes one.

kopf's own server allows whatever arrives at a path that it does not know, closes its listener to
change a certificate, and finds each patch by comparing pods. This one refuses what it does not
know, changes certificates in place, and answers with the operations that the core planned.

It calls the registered handlers itself. kopf's function would prepare a memo, a diff and thirty
arguments that they do not take: a third of the CPU of an admission (1.06 instead of 0.69 ms for a
pod, side by side on a busy machine).
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Final

import kopf
from aiohttp import web

from gpumem_operator.admission.verdict import Verdict
from gpumem_operator.serving.listener import Listener
from gpumem_operator.serving.places import Limits
from gpumem_operator.webhook import telemetry
from gpumem_operator.webhook.certificate import ServingCertificate
from gpumem_operator.webhook.exchange import BadReviewError, Exchange, current, response
from gpumem_operator.webhook.handlers import Row

logger = logging.getLogger(__name__)

MAX_BODY_BYTES: Final = 6 * 2**20
"""The API server takes requests of up to 3 MiB, and sends the stored pod along with an update."""
KEEP_ALIVE_SECONDS: Final = 180.0
"""The API server drops idle connections after 90 s. It must be the one that closes: a connection
that ends here while a pod is on its way to it refuses this pod."""
DRAIN_SECONDS: Final = 5.0
"""After SIGTERM, until every API server and every Service proxy knows that we are not ready."""
ANSWER_SECONDS: Final = 3.0
"""For requests that are still running when the listener closes: they time out at 2 s themselves."""

LIMITS: Final = Limits(
    # Each takes some 60 KiB of the 256 MiB of the chart.
    most=1000,
    # An API server has at most 200 changes in flight, and the tunnel through which those of a
    # managed control plane come gives several of them one address.
    most_of_address=600,
    most_bytes=64 * 2**20,
    kept=1000,
)


class AdmissionServer:
    """Give an instance to `settings.admission.server`."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        certificate: ServingCertificate,
        rows: Mapping[str, Row],
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        self._host = host
        self._port = port
        self._certificate = certificate
        self._rows = rows
        self._drain_seconds = drain_seconds
        self.listening_port: int | None = None
        """None before it listens."""
        self.stopping = False

    async def __call__(self, _: kopf.WebhookFn) -> AsyncIterator[kopf.WebhookClientConfig]:
        await self._certificate.loaded.wait()
        server = web.Server(
            self._serve,
            request_factory=_make_request,
            # Who waits for no answer any more shall have no room reserved, and cost nothing.
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
        )
        runner = web.ServerRunner(server, shutdown_timeout=ANSWER_SECONDS)
        await runner.setup()
        context = self._certificate.context
        listener = Listener("webhook", runner.server, limits=LIMITS, context=context)
        try:
            self.listening_port = listener.start(self._host, self._port)
            logger.info("Listening at %s:%s", self._host, self.listening_port)
            # kopf writes webhook configurations from what it gets here; the chart owns ours.
            yield kopf.WebhookClientConfig()
            await asyncio.Event().wait()
        finally:
            await self._drain(listener, runner)

    async def _drain(self, listener: Listener, runner: web.ServerRunner) -> None:
        """Go on answering until nobody sends any more, then end what is still running."""
        self.stopping = True
        try:
            if self.listening_port is not None:
                logger.info("Stopping: answering for another %s s", self._drain_seconds)
                await asyncio.sleep(self._drain_seconds)
        finally:
            listener.close()
            await runner.cleanup()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            answer = await self._answer(request)
        except web.HTTPRequestEntityTooLarge:
            answer = _plain(413, f"the body is larger than {MAX_BODY_BYTES} bytes")
        if self.stopping:
            # The pool on the other side shall have no connection to us when the listener closes.
            answer.force_close()
        return answer

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        if request.method != "POST":
            return _plain(405, f"{request.method} is not understood here: POST an AdmissionReview")
        body = await request.read()
        started = time.perf_counter()
        path = request.path.removeprefix("/")
        try:
            exchange = Exchange.parse(body)
        except BadReviewError as error:
            logger.warning("A request at /%s was refused: %s", path, error)
            telemetry.count_review("error", time.perf_counter() - started)
            return _plain(400, str(error))
        row = self._rows.get(path)
        if row is None:
            verdict = _unknown_path(path, self._rows)
        else:
            verdict = await self._decide(path, row, exchange)
        if verdict.refusal is not None:
            logger.info("Refused pod %s at /%s: %s", exchange.title, path, verdict.refusal)
        telemetry.count_review(_result(verdict), time.perf_counter() - started)
        # Never an HTTP error: to the API server that is a failed call, whose text it does not show,
        # and which it lets pass where the failure policy is Ignore.
        return web.Response(body=response(exchange.uid, verdict), content_type="application/json")

    async def _decide(self, path: str, row: Row, exchange: Exchange) -> Verdict:
        if (exchange.operation, exchange.subresource) != (row.operation, row.subresource):
            return _no_verdict(path, exchange)
        token = current.set(exchange)
        try:
            await row.handler()
        except Exception:
            logger.exception("Pod %s at /%s could not be reviewed", exchange.title, path)
        finally:
            current.reset(token)
        return exchange.verdict or _no_verdict(path, exchange)


def _make_request(
    message: Any, payload: Any, protocol: Any, writer: Any, task: Any
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(
        message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES
    )


def _plain(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=f"gpumem-operator: {text}\n")


def _result(verdict: Verdict) -> telemetry.Result:
    if verdict.refusal is not None:
        return "error" if verdict.code >= 500 else "refused"
    return "mutated" if verdict.operations else "allowed"


def _unknown_path(path: str, paths: Iterable[str]) -> Verdict:
    known = ", ".join(f"/{name}" for name in sorted(paths))
    return Verdict(
        refusal=f"the webhook configuration sends pods to /{path:.200}, which the operator does not"
        f" know (known: {known}): chart and image are of different versions",
        code=404,
    )


def _no_verdict(path: str, exchange: Exchange) -> Verdict:
    # What went wrong is in the log, with its trace. The author of the pod can not use it.
    return Verdict(
        refusal=f"pod {exchange.title} is not let in: the GPU memory operator failed to review it"
        f" ({exchange.operation or 'no operation'} at /{path}). This is a fault of the operator and"
        " not of the pod: tell the platform team, which finds the cause in the webhook's log",
        code=500,
    )

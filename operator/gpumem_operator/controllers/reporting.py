"""Taking reports in, as part of the leader's work: endpoint, certificate, label and Service."""

import asyncio
import base64
import binascii
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from gpumem_operator.controllers.options import ControllerOptions, ReportOptions
from gpumem_operator.controllers.report_service import LeaderLabelWorker
from gpumem_operator.controllers.usage import UsageBoard
from gpumem_operator.controllers.worker import attempt
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.intake.exchange import Exchange
from gpumem_operator.intake.identity import Identities
from gpumem_operator.intake.senders import Accounts, account
from gpumem_operator.intake.server import Documents, Intake
from gpumem_operator.kube.errors import NotFound
from gpumem_operator.kube.resources import SECRETS
from gpumem_operator.kube.serving import ServingCertificate


class ReportIntake:
    """Runs while this process leads."""

    def __init__(
        self,
        board: UsageBoard,
        writer: Writer,
        *,
        exchange: Exchange,
        options: ControllerOptions,
        reports: ReportOptions,
        lapsed: Callable[[], str | None],
    ) -> None:
        """`lapsed`: why this process is not to be asked any more; None while it leads."""
        self._writer = writer
        self._options = options
        self._reports = reports
        self._certificate = ServingCertificate()
        namespace = options.namespace
        self._intake = Intake(
            board.store,
            Identities(writer.api, time.monotonic),
            accounts=Accounts(
                agent=account(namespace, reports.agent_account),
                reader=account(namespace, reports.reader_account),
            ),
            limits=board.limits_of,
            exchange=exchange,
            measured=board.measures,
            expected=board.expects,
            refused=board.why_refused,
            documents=Documents(usage=board.document, tenants=board.tenants_document),
            lapsed=lapsed,
        )

    async def run(self) -> None:
        """Raises OSError where the address is taken."""
        options, reports = self._options, self._reports
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow_secret())
            group.create_task(self._intake.run(options.bind, reports.port, self._certificate))
            if reports.pod:
                label = LeaderLabelWorker(
                    self._writer,
                    namespace=options.namespace,
                    pod=reports.pod,
                    periods=options.periods,
                )
                group.create_task(label.run(self._intake.listening))

    async def _follow_secret(self) -> None:
        """Serve what the Secret holds. It is read, not watched: the CertificateWorker does too."""
        namespace, name = self._options.namespace, self._reports.cert_secret
        path = SECRETS.path(name, namespace=namespace)
        while True:
            with attempt("report service", f"Secret {namespace}/{name}"), suppress(NotFound):
                self._offer(await self._writer.api.get(path))
            loaded = self._certificate.loaded.is_set()
            await asyncio.sleep(self._options.periods.certificates if loaded else 1.0)

    def _offer(self, secret: Mapping[str, Any]) -> None:
        data = secret.get("data") or {}
        try:
            pair = [base64.b64decode(data[key]) for key in ("tls.crt", "tls.key")]
        except (KeyError, binascii.Error):
            # The controller fills the chart's empty Secret in a moment.
            return
        name = f"Secret {self._options.namespace}/{self._reports.cert_secret}"
        self._certificate.offer(*pair, origin=name)

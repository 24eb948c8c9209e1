"""Where the webhook's certificate comes from: a Secret that is watched, or a folder.

With the Secret or folder comes the CA's certificate (`ca.crt`), which sidecars are told so that
they trust the address of reports.
"""

import asyncio
import base64
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from gpumem_operator.kube import serving
from gpumem_operator.webhook import telemetry
from gpumem_operator.webhook.secret import FilledSecret

logger = logging.getLogger(__name__)

CERTIFICATE_FILE: Final = "tls.crt"
KEY_FILE: Final = "tls.key"
CA_FILE: Final = "ca.crt"
FOLDER_SECONDS: Final = 5.0
"""How often a folder is looked at; kubelet itself takes up to a minute to change one."""


class ServingCertificate(serving.ServingCertificate):
    """The webhook's: with numbers about it."""

    def __init__(self) -> None:
        super().__init__()
        # API servers keep their connections and resume no sessions, so tickets are work for nobody.
        self.context.num_tickets = 0

    def failed(self) -> None:
        telemetry.CERTIFICATE_FAILURES.inc()

    def expires(self, at: int) -> None:
        telemetry.CERTIFICATE_EXPIRY.set(at)


Trust = Callable[[str], None]
"""Takes the PEM of the CA that signed the certificate, whenever it is read."""


def _nobody_asks(pem: str) -> None:
    """For a server of which no sidecar has to hear."""


class SecretCopy(FilledSecret):
    """Gives each version of one Secret to the serving certificate, and its CA to `trust`."""

    kept = "certificate is served"

    def __init__(
        self, certificate: ServingCertificate, *, origin: str, trust: Trust = _nobody_asks
    ) -> None:
        super().__init__(origin)
        self._certificate = certificate
        self._trust = trust

    def take(self, data: Mapping[str, str]) -> None:
        try:
            certificate, key = (
                base64.b64decode(data[name]) for name in (CERTIFICATE_FILE, KEY_FILE)
            )
        except KeyError as error:
            logger.error("%s has no key %s, the webhook waits for it", self._origin, error)
            return
        # What a sidecar is told stays with it, so nothing of a pair that is not served. And nothing
        # comes between the two: with the certificate the webhook is ready.
        if self._certificate.offer(certificate, key, origin=self._origin):
            self._trust(base64.b64decode(data.get(CA_FILE) or "").decode("ascii", errors="ignore"))


async def follow_folder(
    certificate: ServingCertificate, folder: Path, *, trust: Trust = _nobody_asks
) -> None:
    """Offer what is in the folder, now and whenever it changes. Never ends."""
    seen: tuple[bytes, bytes, bytes] | None = None
    complaint = ""
    while True:
        try:
            files = _read(folder)
        except OSError as error:
            if str(error) != complaint:
                complaint = str(error)
                logger.error("The certificate in %s can not be read: %s", folder, error)
        else:
            # The CA may change alone: one more is trusted before a leaf of it is served.
            if files != seen:
                seen = files
                served, key, ca = files
                if certificate.offer(served, key, origin=str(folder)):
                    trust(ca.decode("ascii", errors="ignore"))
        await asyncio.sleep(FOLDER_SECONDS)


def _read(folder: Path) -> tuple[bytes, bytes, bytes]:
    """Certificate, key, and the CA's certificate, which may be missing. Raises OSError."""
    try:
        ca = (folder / CA_FILE).read_bytes()
    except FileNotFoundError:
        ca = b""
    return (folder / CERTIFICATE_FILE).read_bytes(), (folder / KEY_FILE).read_bytes(), ca

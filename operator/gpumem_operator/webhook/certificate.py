"""The certificate of the TLS server, replaced while it serves.

One SSLContext lives as long as the process. A new pair is tried in a context of its own and then
loaded into the living one: later handshakes use it, running connections keep theirs, and the
listener never closes. A broken pair changes nothing.
"""

import asyncio
import base64
import logging
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from gpumem_operator.kube.connection import load_pair
from gpumem_operator.webhook import telemetry

logger = logging.getLogger(__name__)

CERTIFICATE_FILE: Final = "tls.crt"
KEY_FILE: Final = "tls.key"
FOLDER_SECONDS: Final = 5.0
"""How often a folder is looked at; kubelet itself takes up to a minute to change one."""


class ServingCertificate:
    """The living context; `loaded` is set once it has a certificate."""

    def __init__(self) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        # API servers keep their connections and resume no sessions, so tickets are work for nobody.
        self.context.num_tickets = 0
        self.loaded = asyncio.Event()
        self._pair: tuple[bytes, bytes] | None = None

    def offer(self, certificate: bytes, key: bytes, *, origin: str) -> bool:
        """Serve this pair from now on; false, with a line in the log, where it is unusable."""
        if self._pair == (certificate, key):
            return True
        try:
            expiry = try_pair(certificate, key)
        except (ValueError, ssl.SSLError) as error:
            kept = "the one before is served on" if self._pair else "there is none to serve"
            logger.error("The certificate in %s is unusable, %s: %s", origin, kept, error)
            telemetry.CERTIFICATE_FAILURES.inc()
            return False
        load_pair(self.context, certificate, key)
        self._pair = (certificate, key)
        telemetry.CERTIFICATE_EXPIRY.set(expiry)
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expiry))
        logger.info("Serving the certificate in %s, valid until %s", origin, until)
        self.loaded.set()
        return True


def try_pair(certificate: bytes, key: bytes) -> int:
    """Shake hands in memory with the pair; returns when it expires, in seconds since 1970.

    Raises ssl.SSLError where a client would refuse it for itself: broken, expired, not for servers,
    or with another's key. Who signed it and for which name is for the API server to judge.
    """
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pair(serving, certificate, key)
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname = False
    asking.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    asking.load_verify_locations(cadata=certificate.decode("ascii"))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    client = asking.wrap_bio(to_client, to_server)
    for step in (client, server, client):
        with suppress(ssl.SSLWantReadError):
            step.do_handshake()
    peer = client.getpeercert() or {}
    return ssl.cert_time_to_seconds(str(peer["notAfter"]))


class SecretCopy:
    """Gives each version of one Secret to the serving certificate."""

    def __init__(self, certificate: ServingCertificate, *, origin: str) -> None:
        self._certificate = certificate
        self._origin = origin

    def replace(self, objects: Sequence[Mapping[str, Any]]) -> None:
        if not objects:
            logger.warning("%s does not exist yet, the webhook waits for it", self._origin)
        for raw in objects:
            self.put(raw)

    def put(self, raw: Mapping[str, Any]) -> None:
        data = raw.get("data") or {}
        try:
            certificate, key = (
                base64.b64decode(data[name]) for name in (CERTIFICATE_FILE, KEY_FILE)
            )
        except KeyError as error:
            logger.error("%s has no key %s, the webhook waits for it", self._origin, error)
            return
        self._certificate.offer(certificate, key, origin=self._origin)

    def drop(self, raw: Mapping[str, Any]) -> None:  # noqa: ARG002 (part of the protocol)
        logger.warning("%s was deleted, its last certificate is served on", self._origin)


async def follow_folder(certificate: ServingCertificate, folder: Path) -> None:
    """Offer what is in the folder, now and whenever it changes. Never ends."""
    seen: tuple[bytes, bytes] | None = None
    complaint = ""
    while True:
        try:
            pair = (folder / CERTIFICATE_FILE).read_bytes(), (folder / KEY_FILE).read_bytes()
        except OSError as error:
            if str(error) != complaint:
                complaint = str(error)
                logger.error("The certificate in %s can not be read: %s", folder, error)
        else:
            if pair != seen:
                seen = pair
                certificate.offer(*pair, origin=str(folder))
        await asyncio.sleep(FOLDER_SECONDS)

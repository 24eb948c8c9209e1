"""The certificate of a TLS server, replaced while it serves.

One SSLContext lives as long as the server. A new pair is tried in a context of its own and then
loaded into the living one: later handshakes use it, running connections keep theirs, and the
listener never closes. A broken pair changes nothing.
"""

import asyncio
import logging
import ssl
import time
from contextlib import suppress

from gpumem_operator.kube.connection import load_pair

_LOG = logging.getLogger(__name__)


class ServingCertificate:
    """The living context; `loaded` is set once it has a certificate."""

    def __init__(self) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.loaded = asyncio.Event()
        self._pair: tuple[bytes, bytes] | None = None

    def offer(self, certificate: bytes, key: bytes, *, origin: str) -> bool:
        """Serve this pair from now on; false, with a line in the log, where it is unusable."""
        if self._pair == (certificate, key):
            return True
        try:
            expiry = try_pair(certificate, key)
        except (ValueError, OSError) as error:  # ssl.SSLError is an OSError
            kept = "the one before is served on" if self._pair else "there is none to serve"
            _LOG.error("The certificate in %s is unusable, %s: %s", origin, kept, error)
            self.failed()
            return False
        load_pair(self.context, certificate, key)
        self._pair = (certificate, key)
        self.expires(expiry)
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expiry))
        _LOG.info("Serving the certificate in %s, valid until %s", origin, until)
        self.loaded.set()
        return True

    def failed(self) -> None:
        """Called when a pair was unusable."""

    def expires(self, at: int) -> None:
        """Called with the end of the pair that is served from now on, in seconds since 1970."""


def try_pair(certificate: bytes, key: bytes) -> int:
    """Shake hands in memory with the pair; returns when it expires, in seconds since 1970.

    Raises ssl.SSLError where a client would refuse it for itself: broken, expired, not for servers,
    or with another's key. Who signed it and for which name is for the client to judge.
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

from __future__ import annotations

from cryptography.hazmat.primitives import serialization

from devcluster.pki import Authority
from gpumem_operator.kube.serving import ServingCertificate


def test_it_changes_nothing_and_asks_nobody() -> None:
    pair = Authority().server("webhook", dns=["localhost"], addresses=["127.0.0.1"])
    key = serialization.load_pem_private_key(pair.key, password=None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    serving = ServingCertificate()
    assert not serving.offer(pair.certificate, encrypted, origin="a Secret")
    assert serving.offer(pair.certificate, pair.key, origin="a Secret")

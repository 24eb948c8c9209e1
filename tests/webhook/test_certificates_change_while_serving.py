"""A certificate is replaced in the living context, and a bad one changes nothing."""

import asyncio
import base64
import datetime
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gpumem_operator.kube.serving import try_pair
from gpumem_operator.webhook import certificate as module
from gpumem_operator.webhook.certificate import SecretCopy, ServingCertificate, follow_folder
from webhook.builders import key_pair


def shown_to_clients(serving: ServingCertificate) -> bytes:
    """The certificate that a handshake shows now, as DER."""
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname = False
    asking.verify_mode = ssl.CERT_NONE
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = serving.context.wrap_bio(to_server, to_client, server_side=True)
    client = asking.wrap_bio(to_client, to_server)
    for side in (client, server, client):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return client.getpeercert(binary_form=True) or b""


def der(pem: bytes) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem.decode())


def expired_pair() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "old")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=2))
        .not_valid_after(now - datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return certificate.public_bytes(pem), key.private_bytes(pem, form, none)


async def test_a_new_pair_is_shown_from_the_next_handshake_on() -> None:
    serving = ServingCertificate()
    (first, key, _), (second, second_key, _) = key_pair(), key_pair()
    assert not serving.loaded.is_set()
    assert serving.offer(first, key, origin="test")
    assert serving.loaded.is_set()
    assert shown_to_clients(serving) == der(first)
    assert serving.offer(second, second_key, origin="test")
    assert shown_to_clients(serving) == der(second)


@pytest.mark.parametrize("fault", ["another key", "no certificate", "half a key", "expired"])
async def test_a_bad_pair_changes_nothing(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    serving = ServingCertificate()
    good, key, _ = key_pair()
    serving.offer(good, key, origin="test")
    other, other_key, _ = key_pair()
    bad = {
        "another key": (other, key),
        "no certificate": (b"nothing", other_key),
        "half a key": (other, other_key[:60]),
        "expired": expired_pair(),
    }[fault]
    assert not serving.offer(*bad, origin="Secret a/b")
    assert shown_to_clients(serving) == der(good)
    assert "The certificate in Secret a/b is unusable, the one before is served on" in caplog.text


async def test_the_expiry_is_the_one_in_the_certificate() -> None:
    chain, key, _ = key_pair()
    expected = x509.load_pem_x509_certificate(chain).not_valid_after_utc.timestamp()
    assert try_pair(chain, key) == expected


async def test_a_secret_without_a_key_is_named(caplog: pytest.LogCaptureFixture) -> None:
    serving = ServingCertificate()
    copy = SecretCopy(serving, origin="Secret a/b")
    chain, key, _ = key_pair()
    data = {"tls.crt": base64.b64encode(chain).decode()}
    copy.replace([{"data": data}])
    assert "Secret a/b has no key 'tls.key'" in caplog.text
    copy.put({"data": data | {"tls.key": base64.b64encode(key).decode()}})
    assert serving.loaded.is_set()


async def test_a_folder_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FOLDER_SECONDS", 0.01)
    serving = ServingCertificate()
    task = asyncio.create_task(follow_folder(serving, tmp_path))
    for _ in range(2):
        serving.loaded.clear()
        chain, key, _ = key_pair()
        (tmp_path / "tls.crt").write_bytes(chain)
        (tmp_path / "tls.key").write_bytes(key)
        async with asyncio.timeout(10):
            await serving.loaded.wait()
        assert shown_to_clients(serving) == der(chain)
    task.cancel()

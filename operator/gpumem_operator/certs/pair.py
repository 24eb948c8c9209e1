"""Certificates with their keys: making a CA, signing a leaf, reading what somebody stored."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFETIME: Final = timedelta(days=3652)
LEAF_LIFETIME: Final = timedelta(days=90)
CLOCK_SKEW: Final = timedelta(minutes=5)
"""Certificates begin that much earlier, for readers whose clock is behind."""


class BrokenPair(ValueError):
    """What is stored is no certificate with its key; the text says why."""


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)

    @property
    def parsed(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.certificate)


def read_pair(certificate: bytes, key: bytes) -> Pair:
    """The pair in a Secret. Raises BrokenPair where it is none or the two do not match."""
    if not certificate or not key:
        missing = "tls.key" if certificate else "tls.crt"
        raise BrokenPair(f"{missing} is empty")
    try:
        parsed = x509.load_pem_x509_certificate(certificate)
        private = serialization.load_pem_private_key(key, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BrokenPair(f"tls.crt or tls.key can not be read: {error}") from error
    try:
        theirs = parsed.public_key()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BrokenPair(f"the key in tls.crt can not be read: {error}") from error
    if _public_bytes(theirs) != _public_bytes(private.public_key()):
        raise BrokenPair("tls.key is not the key of tls.crt")
    return Pair(certificate, key)


def make_ca(now: datetime, *, lifetime: timedelta = CA_LIFETIME) -> Pair:
    """A new self-signed CA whose name is unlike that of every other one."""
    key = ec.generate_private_key(ec.SECP256R1())
    # Two CAs of one name in a bundle make verifiers try the wrong one first, and some stop there.
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "gpu-memory-operator"),
            x509.NameAttribute(NameOID.COMMON_NAME, f"gpu-memory-operator CA {now:%Y%m%d%H%M%S%f}"),
        ]
    )
    builder = (
        _builder(name, key.public_key(), now, lifetime)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(ca=True), critical=True)
    )
    return _sign(builder, key, key)


def make_leaf(
    ca: Pair, hosts: Iterable[str], now: datetime, *, lifetime: timedelta = LEAF_LIFETIME
) -> Pair:
    """A server certificate for DNS names and IP addresses, signed by `ca`."""
    ca_key = serialization.load_pem_private_key(ca.key, password=None)
    assert isinstance(ca_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    hosts = tuple(hosts)
    # A common name has at most 64 characters; clients read the alternative names only.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gpu-memory-operator webhook")])
    builder = (
        _builder(name, key.public_key(), now, lifetime)
        .issuer_name(ca.parsed.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(ca=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(map(_general_name, hosts)), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
    )
    return _sign(builder, key, ca_key)


def hosts_of(certificate: x509.Certificate) -> frozenset[str]:
    """The names that a certificate is good for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(
        [
            *names.get_values_for_type(x509.DNSName),
            *map(str, names.get_values_for_type(x509.IPAddress)),
        ]
    )


def is_signed_by(certificate: x509.Certificate, ca: x509.Certificate) -> bool:
    """Whether the CA's key signed it."""
    try:
        certificate.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def is_ca(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def read_bundle(pem: bytes) -> tuple[x509.Certificate, ...]:
    """The certificates in a bundle; none where it can not be read."""
    try:
        return tuple(x509.load_pem_x509_certificates(pem)) if pem.strip() else ()
    except ValueError:
        return ()


def write_bundle(certificates: Iterable[x509.Certificate]) -> bytes:
    return b"".join(
        certificate.public_bytes(serialization.Encoding.PEM) for certificate in certificates
    )


def _builder(
    name: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _sign(
    builder: x509.CertificateBuilder,
    own: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
) -> Pair:
    certificate = builder.sign(signer, hashes.SHA256())
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        own.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def key_usage(*, ca: bool) -> x509.KeyUsage:
    """A CA signs certificates and lists of them; a leaf shows who it is."""
    return x509.KeyUsage(
        digital_signature=not ca,
        key_cert_sign=ca,
        crl_sign=ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _public_bytes(key: object) -> bytes:
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise BrokenPair("the key is not an elliptic curve key, as ours are")
    return key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )

"""The throw-away certificate authority of one cluster: server, client and token signing keys.

Elliptic curve keys, because a cluster makes a handful of them at each start and RSA keys would
take a second.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gpumem_operator.certs.pair import key_usage

LIFETIME = datetime.timedelta(days=365)
CLOCK_LEEWAY = datetime.timedelta(hours=1)
"""Certificates are valid from this long ago, so that a clock set back does not reject them."""


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its key, both as PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str) -> None:
        """Write `name`.crt and `name`.key."""
        (folder / f"{name}.crt").write_bytes(self.certificate)
        write_private(folder / f"{name}.key", self.key)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, from its first byte on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


class Authority:
    """Signs the certificates of one cluster."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "devcluster-ca")])
        certificate = (
            _builder(self._name, self._key, issuer=self._name, issuer_key=self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(key_usage(ca=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.pair = KeyPair(_pem(certificate), private_pem(self._key))

    @classmethod
    def read(cls, folder: Path, name: str) -> Self:
        """The authority whose pair was written into `folder` by that name."""
        authority = cls.__new__(cls)
        certificate, key = ((folder / f"{name}.{end}").read_bytes() for end in ("crt", "key"))
        loaded = serialization.load_pem_private_key(key, password=None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey), "we make no other"
        authority._key = loaded
        authority._name = x509.load_pem_x509_certificate(certificate).subject
        authority.pair = KeyPair(certificate, key)
        return authority

    def server(self, name: str, *, dns: list[str], addresses: list[str]) -> KeyPair:
        """A serving certificate for these names and addresses."""
        alternatives: list[x509.GeneralName] = [x509.DNSName(host) for host in dns]
        alternatives += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return self._sign(
            subject, ExtendedKeyUsageOID.SERVER_AUTH, x509.SubjectAlternativeName(alternatives)
        )

    def client(self, user: str, *, group: str | None = None) -> KeyPair:
        """A client certificate: Kubernetes reads the user from CN and the group from O."""
        names = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
        if group is not None:
            names.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
        return self._sign(x509.Name(names), ExtendedKeyUsageOID.CLIENT_AUTH)

    def _sign(
        self,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        alternatives: x509.SubjectAlternativeName | None = None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, key, issuer=self._name, issuer_key=self._key)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        return KeyPair(_pem(builder.sign(self._key, hashes.SHA256())), private_pem(key))


def signing_key() -> ec.EllipticCurvePrivateKey:
    """The key that signs ServiceAccount tokens."""
    return ec.generate_private_key(ec.SECP256R1())


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        # Go's and Kubernetes' key readers both know this form of an EC key.
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _builder(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    *,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    own_id = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_LEEWAY)
        .not_valid_after(now + LIFETIME)
        # Python verifies strictly from 3.13 on, and then refuses certificates without these.
        .add_extension(own_id, critical=False)
        .add_extension(issuer_id, critical=False)
    )

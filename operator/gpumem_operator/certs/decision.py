"""What to do about certificates, given what is stored and the time: pure, one step after another.

A CA that is replaced stays trusted until no server shows a leaf of it any more:

    pass 1   new CA stored, caBundle = new + old        servers still show a leaf of the old CA
    pass 2   caBundle seen to hold the new CA: new leaf  servers load it within seconds
    later    an hour after the leaf: caBundle = new

An API server reads a changed webhook configuration about a second late. That is why the leaf of a
new CA waits for a later pass, in which the bundle is found rather than written.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509

from gpumem_operator.certs import pair
from gpumem_operator.certs.pair import BrokenPair, Pair

OLD_CA_GRACE: Final = timedelta(hours=1)
"""How long servers may take to load a leaf, until the CA of the one before is dropped."""
MOST_OLD_CAS: Final = 4
"""Keeps a caBundle small whatever somebody does to the Secrets."""


@dataclass(frozen=True)
class Wishes:
    """What the leaf should be."""

    hosts: frozenset[str]
    leaf_lifetime: timedelta = pair.LEAF_LIFETIME


@dataclass(frozen=True)
class Stored:
    """What a Secret holds; empty bytes for what is not there."""

    certificate: bytes = b""
    key: bytes = b""
    bundle: bytes = b""
    """ca.crt of the webhook's Secret."""


@dataclass(frozen=True)
class Situation:
    """Everything that the decision depends on, apart from the time."""

    ca: Stored
    leaf: Stored
    published: tuple[bytes, ...]
    """caBundle of every entry of our webhook configurations; empty where an entry has none."""


@dataclass(frozen=True)
class Decision:
    """What should be stored. None: leave it as it is."""

    bundle: bytes
    """ca.crt and every caBundle, PEM: the present CA first."""
    new_ca: Pair | None = None
    new_ca_reason: str = ""
    new_leaf: Pair | None = None
    new_leaf_reason: str = ""
    leaf_waits: bool = False
    """A new leaf is due once the bundle has been published."""


def decide(situation: Situation, wishes: Wishes, now: datetime) -> Decision:
    """The next step. Keys are random; everything else follows from the arguments."""
    ca, ca_reason = _usable_ca(situation.ca, now, wishes)
    new_ca = None
    if ca is None:
        ca = new_ca = pair.make_ca(now)
    leaf, leaf_reason = _usable_leaf(situation.leaf, ca, now, wishes)
    bundle = pair.write_bundle([ca.parsed, *_old_cas(situation, ca.parsed, leaf, now)])
    new_leaf, waits = None, False
    if leaf is None:
        waits = not _trusted_everywhere(situation.published, ca.parsed)
        if not waits:
            new_leaf = pair.make_leaf(ca, sorted(wishes.hosts), now, lifetime=wishes.leaf_lifetime)
    return Decision(
        bundle=bundle,
        new_ca=new_ca,
        new_ca_reason=ca_reason,
        new_leaf=new_leaf,
        new_leaf_reason=leaf_reason,
        leaf_waits=waits,
    )


def _usable_ca(stored: Stored, now: datetime, wishes: Wishes) -> tuple[Pair | None, str]:
    """The stored CA, or None and why a new one is needed."""
    if not stored.certificate and not stored.key:
        return None, "there is none yet"
    try:
        found = pair.read_pair(stored.certificate, stored.key)
    except BrokenPair as error:
        return None, str(error)
    certificate = found.parsed
    if not pair.is_ca(certificate):
        return None, "the certificate is not that of a CA"
    if now < certificate.not_valid_before_utc:
        return None, f"it is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M}Z"
    # A leaf must not outlive its CA, and users' pods keep the CA for as long as they run.
    if certificate.not_valid_after_utc - now < 2 * wishes.leaf_lifetime:
        return None, f"it expires at {certificate.not_valid_after_utc:%Y-%m-%d %H:%M}Z"
    return found, ""


def _usable_leaf(
    stored: Stored, ca: Pair, now: datetime, wishes: Wishes
) -> tuple[Pair | None, str]:
    """The stored leaf, or None and why a new one is needed."""
    if not stored.certificate and not stored.key:
        return None, "there is none yet"
    try:
        found = pair.read_pair(stored.certificate, stored.key)
    except BrokenPair as error:
        return None, str(error)
    certificate = found.parsed
    if not pair.is_signed_by(certificate, ca.parsed):
        return None, "it was not signed by the present CA"
    if (hosts := pair.hosts_of(certificate)) != wishes.hosts:
        return None, f"it is for {', '.join(sorted(hosts)) or 'no name'}"
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    made = begin + pair.CLOCK_SKEW
    if now < begin:
        return None, f"it is not valid before {begin:%Y-%m-%d %H:%M}Z"
    if now >= made + (end - made) * 2 / 3:
        return None, f"two thirds of its life are over, it expires at {end:%Y-%m-%d %H:%M:%S}Z"
    return found, ""


def _old_cas(
    situation: Situation, ca: x509.Certificate, leaf: Pair | None, now: datetime
) -> Sequence[x509.Certificate]:
    """CAs that servers may still show leaves of: they were trusted, and it is not long ago."""
    if leaf is not None and now >= _loaded_everywhere(leaf):
        return ()
    found: dict[bytes, x509.Certificate] = {}
    for certificate in _certificates([situation.leaf.bundle, *situation.published]):
        if certificate != ca and pair.is_ca(certificate) and now < certificate.not_valid_after_utc:
            found.setdefault(certificate.tbs_certificate_bytes, certificate)
    newest_first = sorted(
        found.values(), key=lambda old: (old.not_valid_before_utc, old.serial_number), reverse=True
    )
    return newest_first[:MOST_OLD_CAS]


def _loaded_everywhere(leaf: Pair) -> datetime:
    return leaf.parsed.not_valid_before_utc + pair.CLOCK_SKEW + OLD_CA_GRACE


def _certificates(bundles: Iterable[bytes]) -> Iterable[x509.Certificate]:
    for bundle in bundles:
        yield from pair.read_bundle(bundle)


def _trusted_everywhere(published: Sequence[bytes], ca: x509.Certificate) -> bool:
    """Whether a leaf of `ca` breaks no connection that works now.

    It breaks none where every entry trusts the CA already, and none where no entry trusts anyone.
    """
    trusted = [pair.read_bundle(bundle) for bundle in published]
    return all(ca in bundle for bundle in trusted) or not any(trusted)

"""Servers show any leaf that was ever stored lately, clients trust any bundle: all must fit."""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gpumem_operator.certs.decision import Decision, Situation, Stored, Wishes, decide
from gpumem_operator.certs.pair import read_bundle

WISHES = Wishes(hosts=frozenset({"gmo-webhook.gpumem.svc", "127.0.0.1"}))
PASS = timedelta(seconds=10)
EMPTY = Stored()
NOTHING = Situation(EMPTY, EMPTY, (b"", b""))


@dataclass
class Cluster:
    """Secrets and webhook configurations as the passes of the controller leave them."""

    folder: Path
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    situation: Situation = NOTHING
    shown: Stored = EMPTY
    """The leaf that a server has loaded, which may be one pass old."""

    def one_pass(self) -> Decision:
        self.shown = self.situation.leaf if self.situation.leaf.certificate else self.shown
        decision = decide(self.situation, WISHES, self.now)
        ca, leaf = self.situation.ca, replace(self.situation.leaf, bundle=decision.bundle)
        if decision.new_ca is not None:
            ca = Stored(decision.new_ca.certificate, decision.new_ca.key)
        if decision.new_leaf is not None:
            leaf = Stored(
                decision.new_leaf.certificate, decision.new_leaf.key, bundle=decision.bundle
            )
        before = self.situation.published
        self.situation = Situation(ca, leaf, (decision.bundle, decision.bundle))
        # While the pass is under way, and shortly after it, readers know the old bundle or the new
        # one; a server has loaded the old leaf, or already the new one.
        bundles = [bundle for bundle in {*before, decision.bundle} if read_bundle(bundle)]
        for shown in {self.shown, leaf}:
            for bundle in bundles if shown.certificate else ():
                handshake(self.folder, shown, bundle)
        self.now += PASS
        return decision


def handshake(folder: Path, leaf: Stored, bundle: bytes) -> None:
    """A TLS handshake in memory, as strict as Python's default; raises ssl.SSLError."""
    (folder / "crt").write_bytes(leaf.certificate)
    (folder / "key").write_bytes(leaf.key)
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(folder / "crt", folder / "key")
    client_context = ssl.create_default_context(cadata=bundle.decode())
    client_context.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname="gmo-webhook.gpumem.svc")
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    waiting = [client, server]
    while waiting:
        side = waiting.pop(0)
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(side)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    cluster.one_pass()
    cluster.one_pass()
    yield cluster
    settled = cluster.one_pass()
    assert (settled.new_ca, settled.new_leaf, settled.leaf_waits) == (None, None, False)


def test_two_passes_after_the_start_everything_is_at_rest(cluster: Cluster) -> None:
    assert cluster.situation.published == (cluster.situation.ca.certificate,) * 2


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(lambda found: replace(found, ca=Stored()), id="the CA"),
        pytest.param(lambda found: replace(found, leaf=Stored()), id="the leaf"),
        pytest.param(lambda found: replace(found, ca=Stored(), leaf=Stored()), id="both Secrets"),
        pytest.param(lambda found: replace(found, ca=Stored(b"a", b"b")), id="the CA's content"),
    ],
)
def test_nobody_is_locked_out_when_secrets_are_lost(cluster: Cluster, loss: object) -> None:
    assert callable(loss)
    cluster.situation = loss(cluster.situation)
    old = cluster.shown
    decisions = [cluster.one_pass() for _ in range(4)]
    assert cluster.shown != old
    assert sum(decision.new_ca is not None for decision in decisions) <= 1
    assert sum(decision.new_leaf is not None for decision in decisions) == 1
    cluster.now += timedelta(hours=2)
    cluster.one_pass()
    assert cluster.situation.published == (cluster.situation.ca.certificate,) * 2


def test_a_bundle_that_was_wiped_is_written_again(cluster: Cluster) -> None:
    cluster.situation = replace(cluster.situation, published=(b"", b"junk"))
    assert cluster.one_pass().bundle == cluster.situation.ca.certificate


def test_a_year_has_six_rotations_and_one_ca(cluster: Cluster) -> None:
    situation, leaves = cluster.situation, 0
    for day in range(1, 366):
        decision = decide(situation, WISHES, cluster.now + timedelta(days=day))
        assert decision.new_ca is None
        if decision.new_leaf is not None:
            leaves += 1
            made = Stored(decision.new_leaf.certificate, decision.new_leaf.key, decision.bundle)
            situation = replace(situation, leaf=made)
    assert leaves == 6

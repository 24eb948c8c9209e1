"""Which certificate is made anew, when, and why: a table of what can be stored."""

from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gpumem_operator.certs import pair
from gpumem_operator.certs.decision import Decision, Situation, Stored, Wishes, decide

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
WISHES = Wishes(hosts=frozenset({"gmo-webhook.gpumem.svc", "localhost", "127.0.0.1"}))
CA = pair.make_ca(NOW - timedelta(days=1))
OTHER_CA = pair.make_ca(NOW - timedelta(days=2))
UNKNOWN_KIND = "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n".format(
    # PKCS 8 with an algorithm, 1.2.3, that nobody has.
    b64encode(bytes.fromhex("300c 0201 00 3004 0602 2a03 0401 00")).decode()
).encode()
LEAF = pair.make_leaf(CA, WISHES.hosts, NOW)
STRANGER = pair.make_leaf(CA, ["gmo.other.svc"], NOW)
OTHER_LEAF = pair.make_leaf(OTHER_CA, WISHES.hosts, NOW)

CA_STORED = Stored(CA.certificate, CA.key)
LEAF_STORED = Stored(LEAF.certificate, LEAF.key, CA.certificate)
STEADY = Situation(CA_STORED, LEAF_STORED, (CA.certificate, CA.certificate))


def decided(situation: Situation, *, after: timedelta = timedelta()) -> Decision:
    return decide(situation, WISHES, NOW + after)


def test_certificates_that_are_right_stay() -> None:
    decision = decided(STEADY)
    assert (decision.new_ca, decision.new_leaf, decision.leaf_waits) == (None, None, False)
    assert decision.bundle == CA.certificate


def test_an_empty_cluster_gets_everything_at_once() -> None:
    decision = decided(Situation(Stored(), Stored(), (b"", b"")))
    assert decision.new_ca is not None
    assert decision.new_leaf is not None
    assert pair.is_signed_by(decision.new_leaf.parsed, decision.new_ca.parsed)
    assert decision.bundle == decision.new_ca.certificate
    assert pair.hosts_of(decision.new_leaf.parsed) == WISHES.hosts


@pytest.mark.parametrize(
    ("leaf", "reason"),
    [
        pytest.param(Stored(), "there is none yet", id="gone"),
        pytest.param(Stored(b"junk", LEAF.key), "can not be read", id="unreadable"),
        pytest.param(Stored(LEAF.certificate), "tls.key is empty", id="half"),
        pytest.param(Stored(LEAF.certificate, UNKNOWN_KIND), "can not be read", id="unknown kind"),
        pytest.param(
            Stored(LEAF.certificate, OTHER_LEAF.key), "tls.key is not the key", id="foreign key"
        ),
        pytest.param(
            Stored(OTHER_LEAF.certificate, OTHER_LEAF.key),
            "not signed by the present CA",
            id="of another CA",
        ),
        pytest.param(
            Stored(STRANGER.certificate, STRANGER.key),
            "it is for gmo.other.svc",
            id="for another name",
        ),
    ],
)
def test_a_leaf_that_can_not_be_used_is_replaced_and_the_reason_named(
    leaf: Stored, reason: str
) -> None:
    decision = decided(replace(STEADY, leaf=leaf))
    assert decision.new_ca is None
    assert decision.new_leaf is not None
    assert reason in decision.new_leaf_reason


@pytest.mark.parametrize(
    ("ca", "reason"),
    [
        pytest.param(Stored(), "there is none yet", id="gone"),
        pytest.param(Stored(b"junk", b"junk"), "can not be read", id="unreadable"),
        pytest.param(Stored(CA.certificate, OTHER_CA.key), "not the key of", id="foreign key"),
        pytest.param(Stored(CA.certificate, UNKNOWN_KIND), "can not be read", id="unknown kind"),
        pytest.param(Stored(LEAF.certificate, LEAF.key), "not that of a CA", id="no CA"),
    ],
)
def test_a_ca_that_can_not_be_used_is_replaced_and_the_reason_named(
    ca: Stored, reason: str
) -> None:
    decision = decided(replace(STEADY, ca=ca))
    assert decision.new_ca is not None
    assert reason in decision.new_ca_reason


@pytest.mark.parametrize(
    ("age", "replaced"),
    [(timedelta(days=59, hours=23), False), (timedelta(days=60), True)],
    ids=["just before two thirds of its life", "at two thirds of its life"],
)
def test_a_leaf_is_rotated_at_two_thirds_of_its_life(age: timedelta, replaced: bool) -> None:
    assert (decided(STEADY, after=age).new_leaf is not None) is replaced


def test_a_ca_is_replaced_while_its_leaves_still_fit_into_its_life() -> None:
    end = CA.parsed.not_valid_after_utc
    before = decide(STEADY, WISHES, end - timedelta(days=181))
    after = decide(STEADY, WISHES, end - timedelta(days=179))
    assert before.new_ca is None
    assert after.new_ca is not None


def test_certificates_are_good_for_readers_whose_clock_is_five_minutes_behind() -> None:
    assert CA.parsed.not_valid_before_utc == NOW - timedelta(days=1, minutes=5)
    assert LEAF.parsed.not_valid_before_utc == NOW - timedelta(minutes=5)


def test_the_leaf_of_a_new_ca_waits_until_every_entry_trusts_that_ca() -> None:
    moved = Situation(Stored(OTHER_CA.certificate, OTHER_CA.key), LEAF_STORED, STEADY.published)
    waiting = decided(moved)
    assert waiting.leaf_waits
    assert waiting.new_leaf is None
    assert waiting.bundle == OTHER_CA.certificate + CA.certificate

    half = decided(replace(moved, published=(waiting.bundle, CA.certificate)))
    assert half.new_leaf is None
    whole = decided(replace(moved, published=(waiting.bundle, waiting.bundle)))
    assert whole.new_leaf is not None
    assert pair.is_signed_by(whole.new_leaf.parsed, OTHER_CA.parsed)


def test_the_old_ca_is_dropped_an_hour_after_the_new_leaf() -> None:
    both = OTHER_CA.certificate + CA.certificate
    leaf = Stored(OTHER_LEAF.certificate, OTHER_LEAF.key, both)
    situation = Situation(Stored(OTHER_CA.certificate, OTHER_CA.key), leaf, (both,))
    assert decided(situation, after=timedelta(minutes=59)).bundle == both
    assert decided(situation, after=timedelta(minutes=61)).bundle == OTHER_CA.certificate


def test_the_old_ca_is_found_in_the_webhook_configurations_when_both_secrets_are_gone() -> None:
    decision = decided(Situation(Stored(), Stored(), (CA.certificate,)))
    assert decision.new_ca is not None
    assert decision.bundle == decision.new_ca.certificate + CA.certificate
    assert decision.leaf_waits


def test_a_bundle_full_of_foreign_authorities_stays_small() -> None:
    many = b"".join(pair.make_ca(NOW - timedelta(days=day)).certificate for day in range(3, 30))
    decision = decided(Situation(Stored(), Stored(), (many + b"",)))
    assert decision.bundle.count(b"BEGIN CERTIFICATE") == 5


def test_only_authorities_that_have_not_expired_are_kept_in_the_bundle() -> None:
    expired = pair.make_ca(NOW - timedelta(days=20), lifetime=timedelta(days=19))
    decision = decided(
        Situation(Stored(), Stored(), (expired.certificate + LEAF.certificate + b"x",))
    )
    assert decision.new_ca is not None
    assert decision.bundle == decision.new_ca.certificate

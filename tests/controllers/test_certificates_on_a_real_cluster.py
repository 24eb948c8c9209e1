"""Secrets and caBundles, kept by the controller with the rights that the chart gives it."""

import base64
import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

from controllers.cluster_view import View
from controllers.stored import Raw
from devcluster.installation import Installation
from gpumem_operator.certs import pair
from gpumem_operator.controllers.certificates import CertificateWorker
from gpumem_operator.controllers.options import CertificateOptions, Periods
from gpumem_operator.controllers.worker import utc_now
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.api import connect

pytestmark = pytest.mark.cluster
NAME = "gpu-memory-operator"
WEBHOOKS = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")


def content(secret: Raw, key: str) -> bytes:
    return base64.b64decode((secret.get("data") or {}).get(key, ""))


def bundles(view: View) -> set[bytes]:
    """Every caBundle of the release."""
    return {
        base64.b64decode(entry["clientConfig"].get("caBundle", ""))
        for kind in WEBHOOKS
        for configuration in view.everything(kind)
        for entry in configuration["webhooks"]
    }


def settled_ca(view: View, namespace: str) -> bytes:
    """The CA in its Secret, once there is one and every entry of the release has it alone."""
    ca = view.until(lambda: content(view.get("secret", f"{NAME}-ca", namespace), "tls.crt"))
    view.until(lambda: bundles(view) == {ca})
    return ca


def test_the_webhook_has_a_certificate_and_the_api_server_its_ca(
    controllers: Installation, view: View
) -> None:
    ca = settled_ca(view, controllers.namespace)
    secret = view.get("secret", f"{NAME}-webhook-cert", controllers.namespace)
    leaf = pair.read_pair(content(secret, "tls.crt"), content(secret, "tls.key"))
    (authority,) = pair.read_bundle(ca)
    assert pair.is_signed_by(leaf.parsed, authority)
    assert {"localhost", "127.0.0.1"} <= pair.hosts_of(leaf.parsed)
    assert content(secret, "ca.crt") == ca


def test_a_ca_bundle_that_was_wiped_comes_back_and_nothing_else_changes(
    controllers: Installation, view: View
) -> None:
    ca = settled_ca(view, controllers.namespace)
    before = {kind: view.everything(kind) for kind in WEBHOOKS}
    for kind in WEBHOOKS:
        for configuration in before[kind]:
            wipe = [
                {"op": "remove", "path": f"/webhooks/{index}/clientConfig/caBundle"}
                for index in range(len(configuration["webhooks"]))
            ]
            view.patch(f"{kind}/{configuration['metadata']['name']}", wipe)
    view.until(lambda: bundles(view) == {ca})
    for kind in WEBHOOKS:
        after = [configuration["webhooks"] for configuration in view.everything(kind)]
        assert after == [configuration["webhooks"] for configuration in before[kind]]


def test_a_lost_ca_is_replaced_and_the_old_one_stays_trusted_for_a_while(
    controllers: Installation, view: View
) -> None:
    namespace = controllers.namespace
    old = settled_ca(view, namespace)
    view.patch(f"secret/{NAME}-ca", {"data": None}, namespace=namespace)
    leaf = view.until(lambda: _leaf_of_new_ca(view, namespace, old))
    new = content(view.get("secret", f"{NAME}-ca", namespace), "tls.crt")
    assert pair.is_signed_by(leaf.parsed, pair.read_bundle(new)[0])
    # The new leaf waited for this.
    assert bundles(view) == {new + old}


def _leaf_of_new_ca(view: View, namespace: str, old: bytes) -> pair.Pair | None:
    secret = view.get("secret", f"{NAME}-webhook-cert", namespace)
    leaf = pair.read_pair(content(secret, "tls.crt"), content(secret, "tls.key"))
    return None if pair.is_signed_by(leaf.parsed, pair.read_bundle(old)[0]) else leaf


class Clock:
    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return utc_now() + self.ahead


class Always:
    """Leads, always."""

    write_seconds = 10.0

    def check(self) -> None:
        pass


@pytest.fixture
async def worker(
    controllers: Installation, namespace: str
) -> AsyncIterator[tuple[CertificateWorker, Clock]]:
    clock = Clock()
    options = CertificateOptions("ca", "leaf", ("absent",), ("gmo.test.svc",))
    async with connect(controllers.cluster.kubeconfig) as api:
        yield (
            CertificateWorker(
                Writer(api, Always()),
                options=options,
                namespace=namespace,
                periods=Periods(),
                now=clock.now,
            ),
            clock,
        )


async def test_a_leaf_is_rotated_after_two_thirds_of_its_life_and_written_once(
    view: View, namespace: str, worker: tuple[CertificateWorker, Clock]
) -> None:
    keeper, clock = worker
    await keeper.reconcile()
    first, ca = view.get("secret", "leaf", namespace), view.get("secret", "ca", namespace)
    clock.ahead = timedelta(days=59)
    await keeper.reconcile()
    assert view.get("secret", "leaf", namespace) == first
    clock.ahead = timedelta(days=61)
    await keeper.reconcile()
    second = view.get("secret", "leaf", namespace)
    assert content(second, "tls.crt") != content(first, "tls.crt")
    assert view.get("secret", "ca", namespace) == ca


async def test_what_somebody_else_keeps_in_the_secret_stays(
    view: View, namespace: str, worker: tuple[CertificateWorker, Clock]
) -> None:
    foreign = {"note": "aGVsbG8=", "tls.crt": "anVuaw=="}
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "leaf", "namespace": namespace},
        "data": foreign,
    }
    view.cluster.kubectl("create", "-f", "-", input=json.dumps(body))
    keeper, _ = worker
    await keeper.reconcile()
    secret = view.get("secret", "leaf", namespace)
    assert content(secret, "note") == b"hello"
    pair.read_pair(content(secret, "tls.crt"), content(secret, "tls.key"))

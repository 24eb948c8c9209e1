"""The webhook while certificates change, and while it or its API server is away."""

import base64
import json
import os
import re
import signal
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from devcluster import Cluster
from devcluster.installation import Installation
from devcluster.pki import Authority
from devcluster.provided import PROVIDED_SECRET
from flood import silent_connections
from gpumem_operator import names
from patience import eventually
from webhook.builders import cpu_pod, gpu_pod, policy
from webhook.in_a_cluster import apply, complaints, create, env_of, is_handled

pytestmark = pytest.mark.cluster


@contextmanager
def creating(cluster: Cluster, namespace: str, *, clients: int = 3) -> Iterator[list[str]]:
    """Dry-run creates of GPU pods until the end of the block; yields the errors so far."""
    errors: list[str] = []
    stop = threading.Event()
    done = [0] * clients
    key = cluster.root / "pki" / "admin.key"
    context = ssl.create_default_context(cadata=cluster.ca_pem.decode())
    context.load_cert_chain(cluster.root / "pki" / "admin.crt", key)
    url = f"{cluster.url}/api/v1/namespaces/{namespace}/pods?dryRun=All"
    body = json.dumps(gpu_pod(namespace=namespace)).encode()
    headers = {"Content-Type": "application/json"}

    def client(number: int) -> None:
        while not stop.is_set():
            request = urllib.request.Request(url, body, headers)
            try:
                with urllib.request.urlopen(request, context=context) as answer:
                    answer.read()
            except OSError as error:
                text = getattr(error, "read", lambda: b"")().decode()
                errors.append(f"{error}: {text}")
            done[number] += 1

    with ThreadPoolExecutor(clients) as pool:
        for number in range(clients):
            pool.submit(client, number)
        try:
            yield errors
            # Whatever the block did, some creates must have come after it.
            seen = sum(done)
            eventually(lambda: sum(done) > seen + 20)
        finally:
            stop.set()


def test_a_certificate_is_replaced_under_load_without_one_failed_create(
    cluster: Cluster, webhook: Installation, team: str
) -> None:
    authority = Authority()
    ca = authority.pair.certificate.decode()
    old = json.loads(
        cluster.kubectl(
            "get", "secret", PROVIDED_SECRET, "-n", webhook.namespace, "-o", "json"
        ).stdout
    )
    trusted = ssl_bundle(old) + ca
    trust(cluster, webhook, trusted)
    with creating(cluster, team) as errors:
        for round_ in range(4):
            pair = authority.server(f"round-{round_}", dns=["localhost"], addresses=["127.0.0.1"])
            content = {"tls.crt": pair.certificate.decode(), "tls.key": pair.key.decode()}
            patch = json.dumps({"stringData": content})
            where = [PROVIDED_SECRET, "-n", webhook.namespace]
            cluster.kubectl("patch", "secret", *where, "--type=merge", "-p", patch)
            eventually(partial(is_shown, webhook, pair.certificate.decode()))
    assert errors == []


def ssl_bundle(secret: Any) -> str:
    return base64.b64decode(secret["data"]["ca.crt"]).decode()


def trust(cluster: Cluster, webhook: Installation, bundle: str) -> None:
    encoded = base64.b64encode(bundle.encode()).decode()
    for kind, count in (("mutating", 2), ("validating", 1)):
        patch = [
            {"op": "replace", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": encoded}
            for index in range(count)
        ]
        what = [f"{kind}webhookconfiguration", webhook.release]
        cluster.kubectl("patch", *what, "--type=json", "-p", json.dumps(patch))


def is_shown(webhook: Installation, pem: str) -> bool:
    port = int(webhook.webhook_url.rpartition(":")[2])
    return ssl.get_server_certificate(("127.0.0.1", port)) == pem


def test_while_the_webhook_is_stopped_gpu_pods_wait_and_nothing_else_does(
    cluster: Cluster, webhook: Installation, team: str
) -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "train", "namespace": team},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "train"}},
            "template": {
                "metadata": {"labels": {"app": "train"}},
                "spec": gpu_pod()["spec"],
            },
        },
    }
    webhook.stop_webhook()
    try:
        refused = create(cluster, gpu_pod("alone", namespace=team))
        assert 'failed calling webhook "mutate-pod.gpumemory.dev"' in refused
        assert_counted_by_the_server(cluster)
        assert not isinstance(create(cluster, cpu_pod(namespace=team)), str)
        cluster.kubectl("create", "configmap", "c", "-n", team)
        cluster.kubectl("create", "-f", "-", input=json.dumps(deployment))
        eventually(lambda: "FailedCreate" in cluster.kubectl("get", "events", "-n", team).stdout)
        assert pods_of(cluster, team) == []
    finally:
        webhook.start_webhook()
    eventually(lambda: len(pods_of(cluster, team)) == 2)
    assert all(map(is_handled, pods_of(cluster, team)))


def assert_counted_by_the_server(cluster: Cluster) -> None:
    """An alert of the chart is about this series."""
    series = cluster.kubectl("get", "--raw", "/metrics").stdout
    lines = re.findall(r"^apiserver_admission_webhook_rejection_count{(.+)}", series, re.MULTILINE)
    told = 'error_type="calling_webhook_error",name="mutate-pod.gpumemory.dev"'
    assert any(line.startswith(told) for line in lines), lines


def pods_of(cluster: Cluster, namespace: str) -> list[Any]:
    found = cluster.kubectl("get", "pods", "-n", namespace, "-l", "app=train", "-o", "json")
    items: list[Any] = json.loads(found.stdout)["items"]
    return items


def test_while_the_webhook_hangs_pods_without_a_gpu_notice_nothing(
    cluster: Cluster, webhook: Installation, team: str
) -> None:
    [pid] = webhook.webhook_pids
    with stopped(pid):
        started = time.monotonic()
        assert not isinstance(create(cluster, cpu_pod(namespace=team)), str)
        without_gpu = time.monotonic() - started
        started = time.monotonic()
        assert "failed calling webhook" in create(cluster, gpu_pod(namespace=team))
        with_gpu = time.monotonic() - started
    assert without_gpu < 1.5 < with_gpu


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_the_webhook_asks_for_nothing_that_it_may_not_have(webhook: Installation) -> None:
    """The log tells about all tests before. An API server that starts refuses everybody until it
    has read its own roles, so the tests that restart it come after this one."""
    assert complaints(webhook) == []


def test_an_api_server_that_was_away_is_followed_again(
    cluster: Cluster, webhook: Installation, team: str
) -> None:
    cluster.restart_apiserver(down_seconds=2)
    cluster.kubectl("delete", names.POLICY_PLURAL, "--all", "-n", team)
    eventually(lambda: not is_handled(create(cluster, gpu_pod(namespace=team), "--dry-run=server")))
    apply(cluster, policy("again", namespace=team))
    assert is_handled(create(cluster, gpu_pod(namespace=team)))
    assert len(webhook.webhook_pids) == 1


def test_definitions_that_are_installed_later_make_the_webhook_ready(
    cluster: Cluster, webhook: Installation
) -> None:
    found = cluster.kubectl("get", "crd", f"{names.POLICY_PLURAL}.{names.GROUP}", "-o", "json")
    definition = json.loads(found.stdout)
    definition["metadata"] = {"name": definition["metadata"]["name"]}
    definition.pop("status")
    webhook.stop_webhook()
    cluster.kubectl("delete", "crd", definition["metadata"]["name"])
    role = webhook._roles["webhook"]
    role.spawn()
    url = webhook.health_urls("webhook")[0] + "/readyz"
    eventually(lambda: "not listed yet: policies" in answer_of(url))
    cluster.kubectl("create", "-f", "-", input=json.dumps(definition))
    webhook.start_webhook()


def answer_of(url: str) -> str:
    try:
        with urllib.request.urlopen(url) as answer:
            text: bytes = answer.read()
    except urllib.error.HTTPError as error:
        text = error.read()
    except OSError as error:
        return str(error)
    return text.decode()


def test_pods_are_let_in_while_somebody_floods_the_webhook(
    cluster: Cluster, webhook: Installation, team: str
) -> None:
    port = int(webhook.webhook_url.rpartition(":")[2])
    with silent_connections(port, held=3000):
        # The webhook has as many connections to accept as the flood began with.
        eventually(lambda: isinstance(create(cluster, gpu_pod("first", namespace=team)), dict))
        for number in range(5):
            pod = create(cluster, gpu_pod(f"train-{number}", namespace=team))
            assert env_of(pod)[names.LIMIT_BYTES_ENV] == str(8 * 2**30)

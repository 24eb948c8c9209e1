"""The webhook process behind a real API server, registered by the chart."""

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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from devcluster import Cluster
from devcluster.installation import PROVIDED_SECRET, Installation
from devcluster.pki import Authority
from gpumem_operator import names
from webhook.builders import claim_pod, cpu_pod, gpu_pod, policy, tenant

pytestmark = pytest.mark.cluster
DEADLINE_SECONDS = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster of this file's own: it stops the API server and the webhook."""
    with Cluster.start() as started:
        yield started


@pytest.fixture(scope="module")
def webhook(cluster: Cluster) -> Iterator[Installation]:
    with Installation.start(cluster, roles=["webhook"]) as installation:
        yield installation


@pytest.fixture
def team(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace with a policy, as fresh as the test."""
    name = re.sub("[^a-z]+", "-", request.node.name)[:50].strip("-")
    cluster.kubectl("create", "namespace", name)
    apply(cluster, policy(namespace=name))
    eventually(lambda: default_account(cluster, name))
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def default_account(cluster: Cluster, namespace: str) -> bool:
    found = cluster.kubectl("get", "serviceaccount", "default", "-n", namespace, check=False)
    return found.returncode == 0


def apply(cluster: Cluster, raw: dict[str, Any]) -> None:
    cluster.kubectl("apply", "-f", "-", input=json.dumps(as_authored(raw)))


def as_authored(raw: dict[str, Any]) -> dict[str, Any]:
    """The object without what the server chooses."""
    keys = ("name", "namespace", "labels")
    return raw | {"metadata": {k: v for k, v in raw["metadata"].items() if k in keys}}


def create(cluster: Cluster, raw: dict[str, Any], *flags: str) -> Any:
    """The stored object, or the error text."""
    result = cluster.kubectl(
        "create", "-f", "-", "-o", "json", *flags, input=json.dumps(raw), check=False
    )
    return json.loads(result.stdout) if result.returncode == 0 else result.stderr


def env_of(pod: Any) -> dict[str, str | None]:
    assert not isinstance(pod, str), pod
    [main] = [c for c in pod["spec"]["containers"] if c["name"] == "main"]
    return {entry["name"]: entry.get("value") for entry in main.get("env", [])}


def is_handled(pod: Any) -> bool:
    return names.LIMIT_SOURCE_ENV in env_of(pod)


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.05)


def reviews(webhook: Installation) -> float:
    """Answers that the webhook gave so far."""
    with urllib.request.urlopen(webhook.health_urls("webhook")[0] + "/metrics") as answer:
        text = answer.read().decode()
    found = re.findall(r"^gpumem_admission_reviews_total\{.*\} (\S+)$", text, re.MULTILINE)
    return sum(map(float, found))


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


def test_a_gpu_pod_gets_its_limit_with_one_call(
    cluster: Cluster, webhook: Installation, team: str
) -> None:
    before = reviews(webhook)
    pod = create(cluster, gpu_pod(namespace=team))
    assert env_of(pod)[names.LIMIT_BYTES_ENV] == str(8 * 2**30)
    assert pod["spec"]["serviceAccountName"] == "default"
    assert reviews(webhook) - before == 1


def test_a_pod_without_a_gpu_makes_no_call(
    cluster: Cluster, webhook: Installation, team: str
) -> None:
    before = reviews(webhook)
    assert not is_handled(create(cluster, cpu_pod(namespace=team)))
    assert reviews(webhook) == before


@pytest.mark.parametrize("path", ["mutate-pod", "mutate-ephemeral-containers"])
def test_the_charts_paths_are_the_ones_that_are_answered(
    cluster: Cluster, webhook: Installation, path: str
) -> None:
    found = cluster.kubectl("get", "mutatingwebhookconfiguration", webhook.release, "-o", "json")
    hooks = json.loads(found.stdout)["webhooks"]
    urls = [hook["clientConfig"]["url"] for hook in hooks]
    assert f"{webhook.webhook_url}/{path}" in urls


def test_a_path_that_the_webhook_does_not_know_refuses_pods(
    cluster: Cluster, webhook: Installation, team: str
) -> None:
    found = cluster.kubectl("get", "mutatingwebhookconfiguration", webhook.release, "-o", "json")
    configuration = json.loads(found.stdout)
    hook = configuration["webhooks"][0]
    hook["name"] = "astray.example.com"
    hook["clientConfig"]["url"] += "s"
    configuration["webhooks"] = [hook]
    configuration["metadata"] = {"name": "astray"}
    cluster.kubectl("create", "-f", "-", input=json.dumps(configuration))
    try:
        eventually(
            lambda: isinstance(create(cluster, gpu_pod(namespace=team), "--dry-run=server"), str)
        )
        assert "mutate-pods" in create(cluster, gpu_pod(namespace=team))
    finally:
        cluster.kubectl("delete", "mutatingwebhookconfiguration", "astray")


@pytest.mark.usefixtures("webhook")
@pytest.mark.parametrize("number", range(3))
def test_a_pod_in_a_burst_gets_the_policy_that_came_just_before_it(
    cluster: Cluster, number: int
) -> None:
    name = f"burst-policy-{number}"
    assert create_at_once(cluster, name, policy(namespace=name)) == ""
    pod = json.loads(cluster.kubectl("get", "pod", "train", "-n", name, "-o", "json").stdout)
    assert is_handled(pod)


@pytest.mark.usefixtures("webhook")
@pytest.mark.parametrize("with_policy", [True, False], ids=["with a policy", "without a policy"])
def test_a_pod_in_a_burst_is_judged_by_the_tenant_that_came_just_before_it(
    cluster: Cluster, with_policy: bool
) -> None:
    name = f"burst-tenant-{str(with_policy).lower()}"
    small = tenant(name, team=name)
    small["spec"]["quota"]["limit"] = "4Gi"
    policies = [policy(namespace=name)] if with_policy else []
    assert "the whole quota of 4Gi" in create_at_once(cluster, name, *policies, small)
    cluster.kubectl("delete", names.TENANT_PLURAL, name)


def create_at_once(cluster: Cluster, namespace: str, *before_the_pod: dict[str, Any]) -> str:
    """A namespace and all in it with one command; returns what was refused."""
    # A namespace has no default account for some milliseconds, and pods need one.
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "quick"}}
    pod = gpu_pod(namespace=namespace)
    pod["spec"]["serviceAccountName"] = "quick"
    head = {"name": namespace, "labels": {"team": namespace}}
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": head},
        account | {"metadata": {"name": "quick", "namespace": namespace}},
        *map(as_authored, before_the_pod),
        pod,
    ]
    everything = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    said = cluster.kubectl("create", "-f", "-", input=everything, check=False).stderr
    return "".join(line for line in said.splitlines() if not line.startswith("Warning: "))


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
        assert not isinstance(create(cluster, cpu_pod(namespace=team)), str)
        cluster.kubectl("create", "configmap", "c", "-n", team)
        cluster.kubectl("create", "-f", "-", input=json.dumps(deployment))
        eventually(lambda: "FailedCreate" in cluster.kubectl("get", "events", "-n", team).stdout)
        assert pods_of(cluster, team) == []
    finally:
        webhook.start_webhook()
    eventually(lambda: len(pods_of(cluster, team)) == 2)
    assert all(map(is_handled, pods_of(cluster, team)))


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


@pytest.mark.usefixtures("webhook")
def test_a_gpu_by_claim_is_warned_of(cluster: Cluster, team: str) -> None:
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "card", "namespace": team},
        "spec": {
            "devices": {
                "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]
            }
        },
    }
    create(cluster, claim)
    pod = claim_pod(claim="card")
    pod["metadata"]["namespace"] = team
    result = cluster.kubectl("create", "-f", "-", input=json.dumps(pod))
    assert "takes a GPU through claim card of class gpu.nvidia.com" in result.stderr


def test_the_webhook_asks_for_nothing_that_it_may_not_have(webhook: Installation) -> None:
    """The log tells about all tests before. An API server that starts refuses everybody until it
    has read its own roles, so the tests that restart it come after this one."""
    log = webhook.webhook_log.read_text()
    bad = re.compile(r"\b403\b|forbidden|traceback", re.IGNORECASE)
    assert [line for line in log.splitlines() if bad.search(line)] == []


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

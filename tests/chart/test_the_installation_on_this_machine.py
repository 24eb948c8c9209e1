"""The chart with its real processes: what other tests build on."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from typing import Any

import pytest

from devcluster import Cluster, ClusterError
from devcluster.installation import Installation

pytestmark = pytest.mark.cluster


def create(installation: Installation, **limits: str) -> str:
    """What the API server says to a new pod, on trial only; empty where it takes it."""
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "tried-"},
        "spec": {
            "containers": [{"name": "main", "image": "none", "resources": {"limits": limits}}]
        },
    }
    where = ["create", "--dry-run=server", "-n", "default", "-f", "-"]
    result = installation.cluster.kubectl(*where, input=json.dumps(pod), check=False)
    return "" if result.returncode == 0 else result.stderr


def test_gpu_pods_wait_while_the_webhook_is_down_and_no_other_pod_does(
    installation: Installation,
) -> None:
    assert create(installation, **{"nvidia.com/gpu": "1"}) == ""

    installation.stop_webhook()
    assert installation.webhook_pids == []
    assert "failed calling webhook" in create(installation, **{"nvidia.com/gpu": "1"})
    assert create(installation, cpu="1") == ""

    installation.start_webhook()
    assert create(installation, **{"nvidia.com/gpu": "1"}) == ""


def test_the_processes_have_every_right_that_they_use(installation: Installation) -> None:
    for log in (installation.webhook_log, installation.controller_log):
        text = log.read_text()
        assert text
        assert "forbidden" not in text.lower()


def test_the_processes_act_as_their_own_accounts(installation: Installation) -> None:
    for role in ("webhook", "controller"):
        kubeconfig = str(installation.kubeconfig_of(role))
        who = installation.cluster.kubectl(
            "auth",
            "whoami",
            "-o",
            "jsonpath={.status.userInfo.username}",
            "--kubeconfig",
            kubeconfig,
        )
        account = f"{installation.release}-{role}"
        assert who.stdout == f"system:serviceaccount:{installation.namespace}:{account}"


def test_every_role_says_that_it_is_ready(installation: Installation) -> None:
    for role in ("webhook", "controller"):
        [url] = installation.health_urls(role)
        with urllib.request.urlopen(f"{url}/readyz", timeout=5) as answer:
            assert answer.status == 200


@pytest.fixture
def separate() -> Any:
    with Cluster.start() as cluster:
        yield cluster


def test_two_webhooks_stand_in_for_each_other_and_nothing_is_left(separate: Cluster) -> None:
    with Installation.start(
        separate, roles=("webhook",), webhook_replicas=2, values={"resourceClaims": "Refuse"}
    ) as installation:
        first, second = pids = installation.webhook_pids
        pidfds = [os.pidfd_open(pid) for pid in pids]
        os.kill(first, signal.SIGKILL)
        os.waitid(os.P_PIDFD, pidfds[0], os.WEXITED | os.WNOWAIT)

        assert installation.webhook_pids == [second]
        assert [create(installation, **{"nvidia.com/gpu": "1"}) for _ in range(6)] == [""] * 6

        installation.start_webhook()
        assert len(installation.webhook_pids) == 2

        before = installation.webhook_pids
        installation.upgrade({"guard": {"breakGlassGroups": []}})
        assert installation.webhook_pids == before, "no setting of theirs has changed"

    for pid in (*pids, *before):
        assert not os.path.exists(f"/proc/{pid}")
    left = separate.kubectl("get", "validatingwebhookconfigurations", "-o", "name").stdout
    assert installation.release not in left


def test_a_process_that_can_not_start_is_told_with_its_log(separate: Cluster) -> None:
    # Helm takes no values that a process refuses, so somebody writes past it.
    settings = {"data": {"settings.yaml": "sidecar: {resources: {cpu: much}}"}}
    with Installation.start(separate, roles=("webhook",)) as installation:
        name = ("configmap", f"{installation.release}-settings", "-n", installation.namespace)
        separate.kubectl("patch", *name, "-p", json.dumps(settings))
        with pytest.raises(ClusterError, match=r"(?s)ended with status.*end of its log.*much"):
            installation.take_settings()

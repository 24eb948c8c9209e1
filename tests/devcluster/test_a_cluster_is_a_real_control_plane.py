"""What tests of the operator rely on."""

from __future__ import annotations

import json
import socket
import ssl
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cluster_processes import caller, printed_kubeconfig, write_script
from devcluster import Cluster, ClusterError
from patience import WAIT

pytestmark = pytest.mark.cluster

AUDIT_POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
"""


def test_clusters_started_at_the_same_instant_do_not_clash() -> None:
    with ExitStack() as stack:
        starting = [stack.enter_context(caller("-m", "devcluster", "start")) for _ in range(3)]
        kubeconfigs = [printed_kubeconfig(process) for process in starting]
        servers = {
            json.loads(path.read_text())["clusters"][0]["cluster"]["server"] for path in kubeconfigs
        }

    assert len(servers) == 3


def test_the_default_service_account_exists_at_once_so_that_pods_are_taken(
    cluster: Cluster,
) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "first"},
        "spec": {"containers": [{"name": "main", "image": "nothing"}]},
    }

    cluster.kubectl("apply", "-f", "-", input=json.dumps(pod))

    cluster.kubectl("delete", "pod", "first", "--now")


def test_a_pod_without_a_node_to_go_to_is_seen_by_the_scheduler(cluster: Cluster) -> None:
    cluster.kubectl("run", "homeless", "--image=nothing")

    cluster.kubectl("wait", "pod/homeless", "--for=condition=PodScheduled=false", WAIT)

    cluster.kubectl("delete", "pod", "homeless", "--now")


def test_a_failed_command_tells_what_the_server_said(cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match=r"`kubectl get pod nobody` .*(?s:.*)NotFound"):
        cluster.kubectl("get", "pod", "nobody")


def test_the_serving_certificate_passes_strict_verification(cluster: Cluster) -> None:
    tls = ssl.create_default_context(cadata=cluster.ca_pem.decode())
    tls.verify_flags |= ssl.VERIFY_X509_STRICT
    address = urlsplit(cluster.url)
    assert address.hostname
    assert address.port

    with (
        socket.create_connection((address.hostname, address.port)) as plain,
        tls.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        assert secured.version() == "TLSv1.3"


def test_helm_talks_to_the_cluster(cluster: Cluster) -> None:
    assert json.loads(cluster.helm("list", "--output", "json").stdout) == []


def test_commands_leave_nothing_in_the_home_of_the_user(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chart, home = tmp_path / "chart", tmp_path / "home"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: empty, version: 1.0.0}")
    (chart / "templates" / "map.yaml").write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: of-the-chart}}"
    )
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))

    cluster.kubectl("get", "configmaps")
    cluster.helm("install", "some", chart)
    cluster.helm("uninstall", "some")

    assert list(home.rglob("*")) == []


def test_an_apiserver_restart_keeps_address_and_data() -> None:
    with Cluster.start() as cluster:
        url = cluster.url
        cluster.kubectl("create", "configmap", "kept", "--from-literal=key=value")

        cluster.stop_apiserver()
        assert cluster.kubectl("get", "configmap", "kept", check=False).returncode != 0
        cluster.start_apiserver()

        printed = cluster.kubectl("get", "configmap", "kept", "--output=jsonpath={.data.key}")
        assert (printed.stdout, cluster.url) == ("value", url)
        cluster.check()


def test_a_service_account_acts_with_its_own_rights_and_the_audit_log_tells(
    tmp_path: Path,
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(AUDIT_POLICY)
    with Cluster.start(audit_policy=policy) as cluster:
        token = cluster.kubectl("create", "token", "default").stdout.strip()
        kubeconfig = cluster.kubeconfig_for_token(token, tmp_path / "kubeconfig")

        as_account = (f"--kubeconfig={kubeconfig}",)
        who = cluster.kubectl(
            *as_account, "auth", "whoami", "--output=jsonpath={.status.userInfo.username}"
        )
        refused = cluster.kubectl(*as_account, "get", "secrets", check=False)
        events = [json.loads(line) for line in cluster.audit_log.read_text().splitlines()]

    account = "system:serviceaccount:default:default"
    assert who.stdout == account
    assert "Forbidden" in refused.stderr
    assert (account, 403) in {
        (event["user"]["username"], event["responseStatus"]["code"])
        for event in events
        if "responseStatus" in event
    }


def test_a_component_that_dies_at_the_start_gives_an_error_with_its_log(tmp_path: Path) -> None:
    etcd = write_script(tmp_path / "etcd", "echo the disk is on fire", "exit 3")
    root = tmp_path / "cluster"

    with pytest.raises(ClusterError, match=r"etcd ended with status 3(?s:.*)disk is on fire"):
        Cluster.start(root, binaries={"etcd": etcd})

    assert not root.exists()


def test_a_flag_that_the_apiserver_does_not_know_gives_an_error_with_its_log() -> None:
    with pytest.raises(ClusterError, match=r"kube-apiserver ended(?s:.*)unknown flag: --no-such"):
        Cluster.start(apiserver_flags=["--no-such"])

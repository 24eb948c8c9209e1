"""Pods run on a node of ours, and the cluster reaches them as in any cluster."""

from __future__ import annotations

import json
import sys
import time

import pytest

from devcluster import Cluster, ClusterError
from devcluster.node import Node
from node.workload import run_pause
from patience import PATIENCE_SECONDS

pytestmark = pytest.mark.cluster


def test_a_node_is_ready_and_has_an_address_of_its_own(node: Node) -> None:
    raw = json.loads(node.cluster.kubectl("get", "node", node.name, "-o", "json").stdout)

    assert {"type": "InternalIP", "address": node.address} in raw["status"]["addresses"]
    assert raw["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://2.")


def test_what_a_kubelet_sets_for_the_whole_machine_stays_as_it_was(node: Node) -> None:
    inside = node.run("cat", "/proc/sys/kernel/panic", "/proc/sys/kernel/panic_on_oops").stdout

    assert inside.split() == ["10", "1"]
    log = (node.cluster.logs / "kubelet.log").read_text()
    assert "Updating kernel flag" not in log


def test_two_nodes_of_two_clusters_run_side_by_side(node: Node) -> None:
    with Cluster.start() as cluster, Node.start(cluster) as other:
        assert other.address != node.address
        run_pause(other, "beside")
        run_pause(node, "beside")


CONNECTS = """
import socket, ssl
context = ssl._create_unverified_context()
with socket.create_connection(("10.96.0.1", 443), timeout=5) as plain:
    with context.wrap_socket(plain, server_hostname="kubernetes.default") as secure:
        print(secure.version())
"""


def test_on_a_kernel_without_nftables_the_addresses_of_services_lead_somewhere_all_the_same() -> (
    None
):
    with Cluster.start() as cluster, Node.start(cluster, relays_services=True) as node:
        assert node.services == "relayed"
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (said := node.run(sys.executable, "-c", CONNECTS)).stdout:
            assert time.monotonic() < deadline, said.stderr
        assert node.run("pidof", "kube-proxy").stdout == ""


def test_the_end_of_a_component_is_told_with_its_log() -> None:
    with Cluster.start() as cluster, Node.start(cluster) as node:
        node.run("sh", "-c", "kill -KILL $(pidof kubelet)")

        with pytest.raises(ClusterError, match=r"kubelet ended with status -9\. The end of its"):
            check_until_it_fails(node)


def check_until_it_fails(node: Node) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        node.check()

"""Pods of simulated nodes that ask for what can not be had, and pods that go."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from devcluster import Cluster
from devcluster.demo_places import simulated_node
from devcluster.sandbox import why_not
from devcluster.simulated_driver import Driver, create_state, numbered_device
from devcluster.simulated_kubelet import HOLDS, SimulatedKubelet
from devcluster.simulated_pod import SIDECAR
from patience import eventually

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(bool(why_not()), reason=f"needs PID namespaces: {why_not()}"),
]
NODE = "simulated-kubelets-node"


@pytest.fixture(scope="module")
def node(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with one node, whose only card has 80 GiB."""
    folder = tmp_path_factory.mktemp("driver")
    state = create_state(folder / "state", Driver((numbered_device(0, total_mib=81920),)))
    with (
        simulated_node(cluster, NODE, cards=1),
        SimulatedKubelet(cluster, {NODE: state}),
    ):
        yield cluster


def test_what_does_not_fit_is_told_and_what_was_held_before_is_held_again(node: Cluster) -> None:
    create(node, "train", "1Gi")
    eventually(lambda: phase(node, "train") == "Running")
    annotate(node, "train", "200Gi")
    [told] = eventually(lambda: events(node, "train", "SimulationOutOfMemory"))
    assert "could not hold 200Gi, and ended; it is started again with 1024Mi" in told
    annotate(node, "train", "nonsense")
    [told] = eventually(lambda: events(node, "train", "SimulationNotUnderstood"))
    assert f"{HOLDS}='nonsense' is ignored: write whole Gi or Mi" in told

    # It follows other pods still, and this one.
    annotate(node, "train", "300Gi")
    eventually(lambda: len(events(node, "train", "SimulationOutOfMemory")) == 2)
    create(node, "later", "1Gi")
    eventually(lambda: phase(node, "later") == "Running")


def test_the_end_of_a_pod_is_confirmed(node: Cluster) -> None:
    create(node, "ending", "1Gi")
    eventually(lambda: phase(node, "ending") == "Running")
    node.kubectl("delete", "pod", "ending", "--timeout=60s")
    assert node.kubectl("get", "pod", "ending", check=False).returncode != 0


def test_each_container_that_runs_is_ready(node: Cluster) -> None:
    create(node, "ready", "1Gi")
    eventually(lambda: phase(node, "ready") == "Running")
    shown = node.kubectl("get", "pod", "ready", "--no-headers").stdout.split()
    assert shown[1] == "2/2"


def create(cluster: Cluster, name: str, holds: str) -> None:
    """A pod with a sidecar, as admission would have put it there."""
    environment = {"GPUMEM_INTERVAL_SECONDS": "5", "GPUMEM_REPORT_URL": ""}
    sidecar = {
        "name": SIDECAR,
        "image": "none",
        "restartPolicy": "Always",
        "env": [{"name": key, "value": value} for key, value in environment.items()],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {HOLDS: holds}},
        "spec": {
            "nodeName": NODE,
            "tolerations": [{"operator": "Exists"}],
            "initContainers": [sidecar],
            "containers": [{"name": "main", "image": "none"}],
        },
    }
    cluster.kubectl("create", "-f", "-", input=json.dumps(pod))


def annotate(cluster: Cluster, name: str, holds: str) -> None:
    cluster.kubectl("annotate", "pod", name, f"{HOLDS}={holds}", "--overwrite")


def phase(cluster: Cluster, name: str) -> str:
    return cluster.kubectl("get", "pod", name, "-o", "jsonpath={.status.phase}").stdout


def events(cluster: Cluster, name: str, reason: str) -> list[str]:
    chosen = f"--field-selector=involvedObject.name={name},reason={reason}"
    listed = json.loads(cluster.kubectl("get", "events", chosen, "-o", "json").stdout)
    return [one["message"] for one in listed["items"]]

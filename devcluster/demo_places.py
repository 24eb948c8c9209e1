"""The clusters on which the demo can tell its story, each with the product installed on it.

On a control plane alone the operator's processes run on this machine, and no pod runs. On a real
node and on kind everything is as on any cluster: the chart's own Deployments, pods that run, and
sidecars that measure what they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from devcluster.balancer import Balancer
from devcluster.commands import Commands
from devcluster.controlplane import Cluster
from devcluster.failure import ClusterError
from devcluster.gpu_node import offer_gpus
from devcluster.installation import CHART, NAMESPACE, RELEASE, Installation
from devcluster.kind import NAME, KindCluster, find_tools
from devcluster.leader_service import serve_leader
from devcluster.node import Node
from devcluster.node.images import product_archives, why_no_images
from devcluster.pod_addresses import PodAddresses
from devcluster.revival import Revival
from devcluster.roleprocess import free_ports
from devcluster.sandbox import why_not as why_no_sandbox
from devcluster.simulated_driver import Driver, create_state, numbered_device
from devcluster.simulated_kubelet import SimulatedKubelet
from devcluster.simulated_node import SimulatedGpuNode
from devcluster.upgrades import Upgrades

CARDS = 2
MIB_PER_CARD = 81920
LIVE_NODES = {"live-node": "580.159.03", "old-node": "550.54.14"}
"""Drivers by the nodes that have them. The older one hides from a pod what its processes hold."""
SHARED_BY = 4
"""Containers for each card, as a device plugin with time-slicing would hand it out."""
LIVE_SHARED_BY = 8
"""The same, of the nodes on which pods hold memory."""


@dataclass(frozen=True)
class Place:
    """One cluster, ready for the story."""

    commands: Commands
    node: str
    runs_pods: bool
    how_to_end: str
    check: Callable[[], None]
    """Raises ClusterError once a component of the cluster has died; others are started again."""
    keep: Callable[[], None]
    """Have the cluster outlive the demo."""
    logs: Path | None = None
    upgrades: Upgrades | None = None
    no_live_use: str = ""
    """Why the simulated pods can not hold memory; empty where they can, or pods are real."""
    needs_holder: bool = field(default=True)
    """Whether it ends with the process that started it."""


@contextmanager
def control_plane(folder: Path) -> Iterator[Place]:
    with ExitStack() as stack:
        enter = stack.enter_context
        pods = enter(PodAddresses(folder))
        cluster = enter(Cluster.start(folder / "cluster", apiserver_flags=pods.apiserver_flags))
        [port] = free_ports(1)
        report = {"report": {"url": f"https://127.0.0.1:{port}/v1/reports"}}
        installation = enter(Installation.start(cluster, values=report))
        stack.callback(Balancer(port, installation.report_ports).close)
        enter(simulated_node(cluster, "gpu-node", cards=CARDS))
        leader = serve_leader(installation, pods, node="gpu-node")
        revival = Revival(installation, leader)
        if not why_no_sandbox():
            enter(_live_nodes(cluster, folder))
        upgrades = enter(Upgrades(installation))

        def check() -> None:
            cluster.check()
            revival.look()

        yield Place(
            cluster,
            "gpu-node",
            runs_pods=False,
            how_to_end=f".venv/bin/python -m devcluster stop {cluster.root}",
            check=check,
            keep=cluster.hold,
            logs=installation.webhook_log.parent,
            upgrades=upgrades,
            no_live_use=why_no_sandbox() or "",
        )


def simulated_node(
    cluster: Cluster, name: str, *, cards: int, shared_by: int = SHARED_BY
) -> SimulatedGpuNode:
    return SimulatedGpuNode(
        cluster, name, cards=cards, mib_per_card=MIB_PER_CARD, replicas=shared_by
    )


@contextmanager
def _live_nodes(cluster: Cluster, folder: Path) -> Iterator[None]:
    """Nodes on which pods hold memory, one of them with an old driver."""
    with ExitStack() as stack:
        drivers = {}
        for number, (name, version) in enumerate(LIVE_NODES.items()):
            stack.enter_context(simulated_node(cluster, name, cards=1, shared_by=LIVE_SHARED_BY))
            cluster.kubectl("taint", "node", name, "simulation=live:NoSchedule")
            cluster.kubectl("label", "node", name, f"simulation={name}")
            # Each the only card of its node, and no two cards of the world have the same UUID.
            only = numbered_device(0, total_mib=MIB_PER_CARD)
            card = replace(only, uuid=numbered_device(CARDS + number).uuid)
            drivers[name] = create_state(folder / name, Driver((card,), version=version))
        stack.enter_context(SimulatedKubelet(cluster, drivers))
        yield


@contextmanager
def real_node(folder: Path) -> Iterator[Place]:
    """Needs root, see docs/node.md."""
    if (reason := why_no_images()) is not None:
        raise ClusterError(f"No images can be built here: {reason}.")
    archives = product_archives()
    with (
        Cluster.start(folder / "cluster") as cluster,
        Node.start(cluster, driver=simulated_driver()) as node,
    ):
        for archive in archives:
            node.import_image(archive)
        _install(cluster, node.name)
        yield Place(
            cluster,
            node.name,
            runs_pods=True,
            how_to_end=f".venv/bin/python -m devcluster stop {cluster.root}",
            check=node.check,
            keep=cluster.hold,
        )


@contextmanager
def kind(_: Path) -> Iterator[Place]:
    archives = product_archives(builder=find_tools().engine)
    kept: list[bool] = []
    cluster = KindCluster.create(simulated_driver())
    try:
        cluster.load_images(archives)
        _install(cluster, cluster.node)
        yield Place(
            cluster,
            cluster.node,
            runs_pods=True,
            how_to_end=f"kind delete cluster --name {NAME}",
            check=lambda: None,
            keep=lambda: kept.append(True),
            needs_holder=False,
        )
    finally:
        if not kept:
            cluster.delete()


PLACES: dict[str, Callable[[Path], AbstractContextManager[Place]]] = {
    "control-plane": control_plane,
    "node": real_node,
    "kind": kind,
}


def simulated_driver() -> Driver:
    return Driver(tuple(numbered_device(index, total_mib=MIB_PER_CARD) for index in range(CARDS)))


def install_in_pods(commands: Commands, *values: str) -> None:
    """The documented command, with other values; the images are on the nodes already."""
    where = ["--namespace", NAMESPACE, "--create-namespace"]
    commands.helm("install", RELEASE, CHART, *where, *values, "--wait", "--timeout=4m")


def _install(commands: Commands, node: str) -> None:
    offer_gpus(commands, node, cards=CARDS, mib_per_card=MIB_PER_CARD, replicas=SHARED_BY)
    install_in_pods(commands)

"""Where the scenarios run: a node with a GPU and the operator on it. Only the hardware differs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from devcluster import Cluster
from devcluster.demo_places import install_in_pods
from devcluster.failure import ClusterError
from devcluster.installation import NAMESPACE
from devcluster.node import Node
from devcluster.node.cdi import Edits, specification
from devcluster.node.driver import edits
from devcluster.node.images import product_archives
from devcluster.node.offer import Offer
from devcluster.progress import say
from devcluster.simulated_driver import Driver, environment, numbered_device
from gpu_e2e import workload
from gpu_e2e.operator_pods import containers, restarted
from gpu_e2e.requirements import Machine
from gpu_e2e.row import Row, told
from gpu_e2e.watch import Watch
from gpu_e2e.workload import Workload
from node.cgroups import unified

REPLICAS = 8
INTERVAL_SECONDS = 1
"""Of the agent."""
GPU = "nvidia.com/gpu"
ROLES = ("controller", "webhook", "agent")
LOOKS: dict[str, tuple[str, ...]] = {
    "events": ("get", "events", "-A", "--sort-by=.lastTimestamp"),
    "pods": ("get", "pods", "-A", "-o", "wide"),
}
AGENT = {
    "enabled": "true",
    "intervalSeconds": INTERVAL_SECONDS,
    "actions": "{Reclaim,Kill}",
    "readsLimitsOf": "{Driver,MPS}",
}


@dataclass(frozen=True)
class Place:
    node: Node
    workload: Workload
    watch: Watch
    resource: str
    """What a pod asks for to get a part of the card."""
    facts: Sequence[Row]
    simulated: bool


@contextmanager
def real_place(machine: Machine, logs: Path | None = None) -> Iterator[Place]:
    """A node with the first card of this machine.

    `logs` is a folder for those of all components."""
    found, programs = machine.hardware, machine.workload
    card = found.cards[0]
    say("starting the control plane and the node")
    with Cluster.start() as cluster, Node.start(cluster) as node, keeping(logs, cluster):
        say(f"the node is Ready ({node.services})")
        node.write_cdi(found.cdi())
        node.label_gpus(cards=1, mib_per_card=card.mib, replicas=REPLICAS)
        node.plug_in(Offer(GPU, _replicas(card.uuid)))
        library = found.libraries["libnvidia-ml.so.1"]
        driver = {"driver.from": "HostPath", "driver.libraryPath": library}
        install(node, {**AGENT, **driver, "cgroupFolder": unified()})
        with Watch(node, {}) as watch:
            facts = [
                told("card", f"{card.name}, {card.mib} MiB, driver {found.version}"),
                told("containers get the card by", f"CDI, {len(found.libraries)} libraries"),
                told("sidecar gets the card by", "nothing: it asks for none"),
                told("agent gets NVML by", f"the file {library} of the node, and is privileged"),
                told("addresses of Services", node.services),
                told("frameworks", ", ".join(programs.frameworks)),
            ]
            yield Place(node, programs, watch, GPU, facts, simulated=False)


@contextmanager
def simulated_place(logs: Path | None = None) -> Iterator[Place]:
    """The same with a simulated card."""
    card = numbered_device(0)
    driver = Driver((card,))
    say("starting the control plane and the node, with a simulated card")
    with (
        Cluster.start() as cluster,
        Node.start(cluster, driver=driver, driver_everywhere=False) as node,
        keeping(logs, cluster),
    ):
        node.write_cdi(specification({card.uuid: edits(node.driver_state)}, Edits()))
        node.label_gpus(cards=1, mib_per_card=card.total_mib, replicas=REPLICAS)
        node.plug_in(Offer(GPU, _replicas(card.uuid)))
        install(node, {**AGENT, "cgroupFolder": unified()})
        with on_simulated_node(node, GPU) as place:
            yield place


@contextmanager
def on_simulated_node(node: Node, resource: str) -> Iterator[Place]:
    """A node that is there already, with a simulated driver and the agent."""
    with Watch(node, environment(node.driver_state)) as watch:
        facts = [told("card", f"SIMULATED, driver {watch.driver}")]
        yield Place(node, workload.simulated(), watch, resource, facts, simulated=True)


@contextmanager
def keeping(folder: Path | None, cluster: Cluster) -> Iterator[None]:
    """In the end, the logs of all components and of the operator's pods are there.

    Of containers that were started again, those of the run before as well. It asks while the node
    still is there: without its kubelet, a question for a pod's log is never answered."""
    try:
        yield
    finally:
        if folder is not None:
            shutil.copytree(cluster.logs, folder, dirs_exist_ok=True)
            labels = {role: f"app.kubernetes.io/component={role}" for role in ROLES}
            logs = {
                f"{role}.log": ("logs", "-n", NAMESPACE, "-l", label, "--tail=-1")
                for role, label in labels.items()
            }
            for name, what in {**LOOKS, **logs}.items():
                _write(folder / name, cluster, *what)
            with suppress(ClusterError):
                for one in restarted(containers(cluster)):
                    earlier = ("logs", one.pod, "-c", one.name, "-n", NAMESPACE, "--previous")
                    _write(folder / f"previous-{one.pod}-{one.name}.log", cluster, *earlier)


def _write(file: Path, cluster: Cluster, *command: str) -> None:
    shown = cluster.kubectl(*command, check=False)
    file.write_text(shown.stdout + shown.stderr)


def install(node: Node, agent: dict[str, object]) -> None:
    say("bringing the operator's images onto the node")
    for archive in product_archives():
        node.import_image(archive)
    say("installing the chart; helm waits until its pods are ready")
    install_in_pods(node.cluster, *(f"--set=agent.{name}={value}" for name, value in agent.items()))


def _replicas(uuid: str) -> tuple[str, ...]:
    return tuple(f"{uuid}::{number}" for number in range(REPLICAS))

"""Real nodes for all tests of this folder, and the operator installed on them as documented."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

import pytest

from devcluster import Cluster
from devcluster.node import Node, why_not
from devcluster.node.cdi import Edits, specification
from devcluster.node.driver import edits
from devcluster.node.images import why_no_images
from devcluster.node.offer import Offer
from devcluster.simulated_driver import Driver, numbered_device
from endtoend.team import Team
from gpu_e2e.place import AGENT, install
from node.cgroups import unified
from node.workload import CARDS, MIB_PER_CARD, REPLICAS

LIMITS_CGROUPS = "615.71.09"
"""A driver that can."""


@pytest.fixture(scope="session", autouse=True)
def needs_node() -> None:
    if (reason := why_not()) is not None:
        pytest.skip(f"no real node can run here: {reason}")


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """Without images and without the operator."""
    with Cluster.start() as cluster, Node.start(cluster) as started:
        yield started


@pytest.fixture(
    scope="session", params=[False, True], ids=["NVML in GPU containers", "NVML everywhere"]
)
def operator_in_pods(request: pytest.FixtureRequest) -> Iterator[Node]:
    """The documented command with the agent on, and the images that it names already on the node.

    One node has NVML in every container, and its kubelet knows no GPU. On the other, as with
    NVIDIA's toolkit in CDI mode, it is where a device plugin gave a GPU, and in the agent. Tests
    run on both, unless `node.workload` has a mark for them."""
    if (reason := why_no_images()) is not None:
        pytest.skip(f"no images can be built here: {reason}")
    devices = tuple(numbered_device(index, total_mib=MIB_PER_CARD) for index in range(CARDS))
    with (
        Cluster.start() as cluster,
        Node.start(
            cluster, driver=Driver(devices, version=LIMITS_CGROUPS), driver_everywhere=request.param
        ) as node,
    ):
        if request.param:
            node.offer_gpus(cards=CARDS, mib_per_card=MIB_PER_CARD)
        else:
            hand_out(node, [device.uuid for device in devices])
        install(node, {**AGENT, "cgroupFolder": unified()})
        yield node


def hand_out(node: Node, cards: Sequence[str]) -> None:
    """All cards but the last as whole ones, and that one as several that share it."""
    *whole, shared = cards
    replicas = [f"{shared}::{number}" for number in range(REPLICAS)]
    node.label_gpus(cards=CARDS, mib_per_card=MIB_PER_CARD)
    node.write_cdi(specification(dict.fromkeys(cards, edits(node.driver_state)), Edits()))
    node.plug_in(Offer("nvidia.com/gpu", tuple(whole)))
    node.plug_in(Offer("nvidia.com/gpu.shared", tuple(replicas)))


@pytest.fixture
def team(operator_in_pods: Node) -> Iterator[Team]:
    """A namespace under the restricted Pod Security standard, with a policy."""
    cluster = operator_in_pods.cluster
    started = Team(cluster, f"team-{uuid.uuid4().hex[:6]}")
    restricted = "pod-security.kubernetes.io/enforce=restricted"
    cluster.kubectl("label", "namespace", started.name, restricted)
    assert "created" in started.policy("training")
    yield started
    started.end()

"""Real nodes for all tests of this folder, and the operator installed on them as documented."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from devcluster import Cluster
from devcluster.demo_places import install_in_pods
from devcluster.node import Node, why_not
from devcluster.node.images import product_archives, why_no_images
from devcluster.simulated_driver import Driver, numbered_device
from endtoend.team import Team
from node.workload import CARDS, MIB_PER_CARD


@pytest.fixture(scope="session", autouse=True)
def needs_node() -> None:
    if (reason := why_not()) is not None:
        pytest.skip(f"no real node can run here: {reason}")


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """Without images and without the operator."""
    with Cluster.start() as cluster, Node.start(cluster) as started:
        yield started


@pytest.fixture(scope="session", params=[False, True], ids=["without NVML", "with NVML"])
def operator_in_pods(request: pytest.FixtureRequest) -> Iterator[Node]:
    """The documented command, with the images that it names already on the node.

    Tests run on both nodes, unless `node.workload` has a mark for them."""
    if (reason := why_no_images()) is not None:
        pytest.skip(f"no images can be built here: {reason}")
    with Cluster.start() as cluster, Node.start(cluster, driver=driver_of(request)) as node:
        node.offer_gpus(cards=CARDS, mib_per_card=MIB_PER_CARD)
        for archive in product_archives():
            node.import_image(archive)
        install_in_pods(cluster)
        yield node


def driver_of(request: pytest.FixtureRequest) -> Driver | None:
    """The driver that containers find, with the cards that the node offers."""
    if not request.param:
        return None
    cards = (numbered_device(index, total_mib=MIB_PER_CARD) for index in range(CARDS))
    return Driver(tuple(cards))


@pytest.fixture
def nvml(operator_in_pods: Node) -> bool:
    """Whether containers find NVML on this node."""
    return operator_in_pods.driver_state.exists()


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

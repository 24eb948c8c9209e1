"""One real node for all tests of this folder, and the operator installed on it as documented."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from devcluster import Cluster
from devcluster.installation import CHART, NAMESPACE, RELEASE
from devcluster.node import Node, why_not
from devcluster.node.images import product_archives, why_no_images
from endtoend.team import Team
from node.workload import MIB_PER_CARD


@pytest.fixture(scope="session", autouse=True)
def needs_node() -> None:
    if (reason := why_not()) is not None:
        pytest.skip(f"no real node can run here: {reason}")


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    with Cluster.start() as cluster, Node.start(cluster) as started:
        yield started


@pytest.fixture(scope="session")
def operator_in_pods(node: Node) -> Iterator[Node]:
    """The documented command, with the images that it names already on the node."""
    if (reason := why_no_images()) is not None:
        pytest.skip(f"no images can be built here: {reason}")
    node.offer_gpus(cards=2, mib_per_card=MIB_PER_CARD)
    for archive in product_archives():
        node.import_image(archive)
    where = ["--namespace", NAMESPACE, "--create-namespace"]
    node.cluster.helm("install", RELEASE, CHART, *where, "--wait", "--timeout=4m")
    yield node
    node.cluster.helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait")


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

"""A control plane of its own with the chart and two controllers: nobody else changes its objects.

No webhook runs there, so pods are stored exactly as tests write them: into namespaces that
admission leaves out while they are written.
"""

import json
import uuid
from collections.abc import Iterator

import pytest

from controllers.cluster_view import View
from devcluster import Cluster
from devcluster.installation import Installation


@pytest.fixture(scope="session")
def controllers() -> Iterator[Installation]:
    with (
        Cluster.start() as cluster,
        Installation.start(cluster, roles=("controller",), controller_replicas=2) as installation,
    ):
        yield installation


@pytest.fixture
def view(controllers: Installation) -> View:
    return View(controllers.cluster)


@pytest.fixture
def namespace(controllers: Installation) -> Iterator[str]:
    """A namespace that admission leaves out; `View.admit` ends that."""
    name = f"team-{uuid.uuid4().hex[:6]}"
    labels = {"gpumemory.dev/ignore": "true", "team": name}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    controllers.cluster.kubectl("create", "-f", "-", input=json.dumps(body))
    yield name
    controllers.cluster.kubectl("delete", "namespace", name, "--wait=false")

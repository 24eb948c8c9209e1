"""The webhook process behind a real API server, registered by the chart."""

import re
from collections.abc import Iterator

import pytest

from devcluster import Cluster
from devcluster.installation import Installation
from patience import eventually
from webhook.builders import policy
from webhook.in_a_cluster import apply, default_account


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster of this folder's own: tests stop the API server and the webhook."""
    with Cluster.start() as started:
        yield started


@pytest.fixture(scope="session")
def webhook(cluster: Cluster) -> Iterator[Installation]:
    with Installation.start(cluster, roles=["webhook"]) as installation:
        yield installation


@pytest.fixture
def team(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace with a policy, as fresh as the test."""
    name = re.sub("[^a-z]+", "-", request.node.name)[:50].strip("-")
    cluster.kubectl("create", "namespace", name)
    apply(cluster, policy(namespace=name))
    eventually(lambda: default_account(cluster, name))
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")

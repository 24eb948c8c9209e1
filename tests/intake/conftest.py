"""A control plane of its own with the whole operator: one webhook, two controllers."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import pytest

from devcluster import Cluster
from devcluster.installation import Installation
from intake.senders import ADDRESS, AGENT, AGENT_NODES, NODE, Cast

NODES = [
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    for name in (NODE, *AGENT_NODES)
]


@pytest.fixture(scope="session")
def operator() -> Iterator[Installation]:
    values = {"report": {"url": ADDRESS}}
    with (
        Cluster.start() as cluster,
        Installation.start(cluster, values=values, controller_replicas=2) as installation,
    ):
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": AGENT, "namespace": installation.namespace},
        }
        items = {"apiVersion": "v1", "kind": "List", "items": [*NODES, account]}
        cluster.kubectl("create", "-f", "-", input=json.dumps(items))
        yield installation


@pytest.fixture
def cast(operator: Installation) -> Iterator[Cast]:
    """A namespace with a policy and a tenant of its own."""
    name = f"team-{uuid.uuid4().hex[:6]}"
    found = Cast(operator, name)
    found.set_up()
    yield found
    operator.cluster.kubectl("delete", "gpumemorytenant", name)
    operator.cluster.kubectl("delete", "namespace", name, "--wait=false")

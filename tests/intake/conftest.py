"""A control plane of its own with the whole operator: one webhook, two controllers."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devcluster import Cluster
from devcluster.installation import Installation
from devcluster.leader_service import serve_leader
from devcluster.pod_addresses import PodAddresses
from intake.people import Person
from intake.senders import ADDRESS, AGENT, AGENT_NODES, NODE, Cast

NODES = [
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    for name in (NODE, *AGENT_NODES)
]


@pytest.fixture(scope="session")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    values = {"report": {"url": ADDRESS}}
    with (
        PodAddresses(tmp_path_factory.mktemp("pods")) as pods,
        Cluster.start(apiserver_flags=pods.apiserver_flags) as cluster,
        Installation.start(cluster, values=values, controller_replicas=2) as installation,
    ):
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": AGENT, "namespace": installation.namespace},
        }
        items = {"apiVersion": "v1", "kind": "List", "items": [*NODES, account]}
        cluster.kubectl("create", "-f", "-", input=json.dumps(items))
        serve_leader(installation, pods, node=NODE)
        yield installation


@pytest.fixture
def cast(operator: Installation) -> Iterator[Cast]:
    """A namespace with a policy and a tenant of its own."""
    name = f"team-{uuid.uuid4().hex[:6]}"
    found = Cast(operator, name)
    found.revive()
    found.set_up()
    yield found
    operator.cluster.kubectl("delete", "gpumemorytenant", name)
    operator.cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def person(operator: Installation, tmp_path: Path) -> Iterator[Callable[[], Person]]:
    """Makes people without any right; all of them leave at the end."""
    people: list[Person] = []

    def arrive() -> Person:
        people.append(Person(operator, f"person-{uuid.uuid4().hex[:6]}", tmp_path))
        return people[-1]

    yield arrive
    for one in people:
        one.leave()


@pytest.fixture
def viewer(person: Callable[[], Person]) -> Person:
    """Someone who may look at everything that is stored."""
    return person().views_everything()


@pytest.fixture
def reader(person: Callable[[], Person]) -> Person:
    """Someone who may also ask the leader."""
    return person().views_everything().reads()

"""A control plane of its own with the whole operator, and a node that takes GPU pods."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from devcluster import Cluster
from devcluster.installation import Installation
from devcluster.simulated_node import SimulatedGpuNode
from scaling.fleet import Fleet

VALUES = {"scaling": {"targets": [{"group": "engines.example", "resource": "engines"}]}}


@pytest.fixture(scope="session")
def operator() -> Iterator[Installation]:
    with (
        Cluster.start() as cluster,
        Installation.start(cluster, values=VALUES, controller_replicas=2) as installation,
        SimulatedGpuNode(cluster, "gpu-1", cards=8, mib_per_card=81920, replicas=20),
    ):
        yield installation


@pytest.fixture
def fleet(operator: Installation) -> Iterator[Callable[..., Fleet]]:
    """Makes a namespace with a policy that scales Deployment `serve`; fields are its entry's."""
    made: list[Fleet] = []

    def make(**fields: Any) -> Fleet:
        found = Fleet(operator, f"team-{uuid.uuid4().hex[:6]}")
        made.append(found)
        found.revive()
        found.begin(**fields)
        return found

    yield make
    for one in made:
        one.end()

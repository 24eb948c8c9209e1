"""A cluster of its own: what the chart guards is tried without any process that would help."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from chart.actors import BARE_POD, CONTROLLER, PLATFORM, POD, POLICY, RIGHTS, TENANT, Actor
from devcluster import Cluster
from devcluster.installation import Installation
from patience import PATIENCE_SECONDS


@pytest.fixture(scope="package")
def bare() -> Iterator[Installation]:
    """The chart as installed, with nobody behind its webhooks."""
    with Cluster.start() as cluster, Installation.start(cluster, roles=()) as installation:
        yield installation


@pytest.fixture(scope="package")
def guarded(bare: Installation) -> Installation:
    kubectl = bare.cluster.kubectl
    kubectl("create", "namespace", "tenant")
    for right in RIGHTS:
        kubectl("create", *right)
    kubectl("create", "serviceaccount", "default", "-n", "tenant", check=False)
    for pod in (POD, BARE_POD):
        kubectl("create", "-n", "tenant", "-f", "-", input=json.dumps(pod))
    # Guards are in force about a second after they were made; this one stands for all.
    deadline = time.monotonic() + PATIENCE_SECONDS
    dry_run = ["create", "-n", "tenant", "--dry-run=server", "-f", "-"]
    while not Actor(bare, TENANT).does(*dry_run, input=POLICY):
        assert time.monotonic() < deadline, "the guards are not in force"
    return bare


@pytest.fixture
def tenant(guarded: Installation) -> Actor:
    return Actor(guarded, TENANT)


@pytest.fixture
def platform(guarded: Installation) -> Actor:
    return Actor(guarded, PLATFORM)


@pytest.fixture
def controller(guarded: Installation) -> Actor:
    return Actor(guarded, CONTROLLER)

"""A cluster of its own: what the chart guards is tried without any process that would help."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devcluster import Cluster
from devcluster.installation import Installation


@pytest.fixture(scope="package")
def bare() -> Iterator[Installation]:
    """The chart as installed, with nobody behind its webhooks."""
    with Cluster.start() as cluster, Installation.start(cluster, roles=()) as installation:
        yield installation

"""The operator that tests share: installed from its chart once for each test session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devcluster import Cluster
from devcluster.installation import Installation


@pytest.fixture(scope="session")
def installation(cluster: Cluster) -> Iterator[Installation]:
    with Installation.start(cluster) as started:
        yield started

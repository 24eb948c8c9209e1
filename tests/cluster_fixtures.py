"""The control plane that tests share: started once for each test session, gone with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devcluster import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with Cluster.start() as started:
        yield started

"""The operator that tests share: installed from its chart once for each test session.

On a control plane of its own: the chart brings the definitions of both kinds and webhooks for every
namespace, which the tests that share the plain cluster would feel.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devcluster import Cluster
from devcluster.installation import Installation


@pytest.fixture(scope="session")
def installation() -> Iterator[Installation]:
    with Cluster.start() as cluster, Installation.start(cluster) as started:
        yield started

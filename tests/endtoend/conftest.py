from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from devcluster.installation import Installation
from endtoend.team import Team


@pytest.fixture
def team(installation: Installation) -> Iterator[Team]:
    """A namespace of its own, without a policy yet."""
    started = Team(installation.cluster, f"team-{uuid.uuid4().hex[:6]}")
    yield started
    started.end()

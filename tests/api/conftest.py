"""A real API server that knows both kinds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster import Cluster
from gpumem_operator.api.crd import KINDS
from gpumem_operator.cli.generate import REPOSITORY
from patience import WAIT

CRDS = REPOSITORY / "crds"
EXAMPLES = sorted((REPOSITORY / "examples" / "policies").glob("*.yaml"))


@pytest.fixture(params=EXAMPLES, ids=lambda path: path.stem)
def example(request: pytest.FixtureRequest) -> Path:
    path = request.param
    assert isinstance(path, Path)
    return path


@pytest.fixture(scope="package")
def api_server(cluster: Cluster) -> Iterator[Cluster]:
    """With the definitions of crds/, which go again: an installation brings its own."""
    installed = cluster.kubectl("get", "crds", "-o", "name").stdout
    ours = any(kind.plural not in installed for kind in KINDS)
    if ours:
        applied = cluster.kubectl("apply", "-f", CRDS)
        assert applied.stderr == "", "the API server warns about a definition"
        cluster.kubectl("wait", "--for=condition=Established", WAIT, "-f", CRDS)
    yield cluster
    if ours:
        cluster.kubectl("delete", "-f", CRDS)

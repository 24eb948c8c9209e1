"""A second release is refused: its guards would forbid the first one's controller its work."""

from __future__ import annotations

import pytest

from devcluster.installation import CHART, NAMESPACE, RELEASE, Installation

pytestmark = pytest.mark.cluster


def test_another_release_is_refused_and_the_same_one_is_not(bare: Installation) -> None:
    other = bare.cluster.helm(
        *("install", "other", CHART, "--namespace", "elsewhere", "--create-namespace"), check=False
    )

    assert other.returncode != 0
    assert f"has the release {RELEASE} of gpu-memory-operator already" in other.stderr
    assert "other" not in bare.cluster.helm("list", "-A").stdout
    same = ("upgrade", RELEASE, CHART, "--namespace", NAMESPACE, "--reuse-values")
    assert "REVISION: 2" in bare.cluster.helm(*same, "--dry-run=server").stdout

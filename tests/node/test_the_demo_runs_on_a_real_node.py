"""The demo where pods run: what `make kind` tells too, with the same chart and the same images."""

from __future__ import annotations

import pytest

from demo.running import run_demo
from devcluster.node.images import why_no_images

pytestmark = pytest.mark.cluster


def test_the_same_story_ends_with_what_the_pods_hold() -> None:
    if (reason := why_no_images()) is not None:
        pytest.skip(f"no images can be built here: {reason}")

    story = run_demo("--on", "node")

    for shown in (
        "The node is real",
        "init containers  gpumem-shim, gpumem-sidecar",
        "did you mean 64Gi?",
        "Insufficient nvidia.com/memory",
        "--- 7. What is measured",
        "1 x 36Gi (Resource)",
        "$ kubectl gpumem top -n research",
        "$ kubectl gpumem why pod/train -n research",
        "cap of each process: 7Gi for its frameworks, beside a reserve of 1Gi",
    ):
        assert shown in story, f"{shown!r} is missing in:\n{story}"
    assert "--force" not in story

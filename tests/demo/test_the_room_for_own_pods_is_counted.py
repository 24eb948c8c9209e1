"""What the kept demo says about room for pods of one's own."""

from __future__ import annotations

from typing import Any

import pytest

from devcluster.demo_room import pods_that_fit

GIB = 2**30


def pod(gpus: int, memory: str = "", *, phase: str = "Running") -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(gpus), "cpu": "1"}
    if memory:
        limits["nvidia.com/memory"] = memory
    containers: list[dict[str, Any]] = [{"resources": {"limits": limits}}, {"name": "sidecar"}]
    return {"spec": {"containers": containers}, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("others", "charged", "expected"),
    [
        pytest.param([], 0, 8, id="as many as GPUs"),
        pytest.param([pod(1), pod(1), pod(1), pod(1, "8Gi")], 0, 4, id="others have GPUs"),
        pytest.param([pod(1), pod(7, phase="Succeeded")], 0, 7, id="a finished one has none"),
        pytest.param([pod(1, "60Gi")], 0, 2, id="others have memory"),
        pytest.param([], 212, 3, id="the quota has least"),
        pytest.param([], 250, 0, id="never below none"),
    ],
)
def test_what_has_least_room_decides(
    others: list[dict[str, Any]], charged: int, expected: int
) -> None:
    node = {"status": {"allocatable": {"nvidia.com/gpu": "8", "nvidia.com/memory": str(80 * GIB)}}}
    tenant = {
        "spec": {"quota": {"limit": "240Gi"}},
        "status": {"chargedBytes": charged * GIB},
    }
    assert pods_that_fit(pod(1, "8Gi"), node, others, tenant) == expected

"""The scenarios of `make gpu-e2e`, with a simulated card: only the hardware differs.

What the machine takes its time for is measured on real hardware, and not judged here.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devcluster.node import Node
from gpu_e2e.place import on_simulated_node
from gpu_e2e.row import Row
from gpu_e2e.run import ROUNDS, run
from node.workload import nvml_in_gpu_containers

pytestmark = pytest.mark.cluster

SHARED = "nvidia.com/gpu.shared"
SCENARIOS = [scenario.__name__ for together in ROUNDS for scenario in together]


@pytest.fixture(scope="module")
def rows(operator_in_pods: Node) -> Iterator[dict[str, list[Row]]]:
    with on_simulated_node(operator_in_pods, SHARED) as place:
        yield run(place)


@nvml_in_gpu_containers
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_nothing_that_is_promised_is_missed(rows: dict[str, list[Row]], scenario: str) -> None:
    judged = [row for row in rows[scenario] if row.good is not None]

    assert [row.as_line() for row in judged if not row.good] == []
    assert len(rows[scenario]) > 1, "it saw something"

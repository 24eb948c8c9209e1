"""Both ends together: the sidecar's own program on a simulated driver, and the operator."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from devcluster.sandbox import child_of, inside, new_namespace
from devcluster.simulated_driver import MIB, Driver, numbered_device
from intake.real_sidecar import running
from intake.senders import Cast
from simulated_driver.node import Node, needs_namespaces

pytestmark = pytest.mark.cluster


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "driver")


@needs_namespaces
def test_what_a_process_holds_is_in_the_policy_s_status(
    cast: Cast, node: Node, tmp_path: Path
) -> None:
    uid = cast.pod("train")
    with node.hold(3072, prefix=new_namespace()) as held:
        enter = inside(child_of(held.pid))
        # Its environment is that of the test, so the pod is told on the way.
        program = ("env", f"GPUMEM_POD_UID={uid}", sys.executable, "-m", "gpumem_sidecar")
        command = [*enter, *program]
        with running(node.folder, cast, tmp_path, token=cast.token("train"), command=command):
            cast.until(lambda: cast.memory().get("usedBytes") == 3072 * MIB)
            assert cast.memory()["unknownPods"] == 0
            held.set(1024)
            cast.until(lambda: cast.memory().get("usedBytes") == 1024 * MIB)


@needs_namespaces
def test_what_a_driver_hides_is_unknown_and_not_zero(
    cast: Cast, node: Node, tmp_path: Path
) -> None:
    node.use(Driver((numbered_device(0),), version="550.54.14"))
    uid = cast.pod("train")
    with node.hold(3072, prefix=new_namespace()) as held:
        enter = inside(child_of(held.pid))
        program = ("env", f"GPUMEM_POD_UID={uid}", sys.executable, "-m", "gpumem_sidecar")
        command = [*enter, *program]
        labels = {"namespace": cast.namespace, "pod": "train", "reason": "DriverHidesMemory"}
        with running(node.folder, cast, tmp_path, token=cast.token("train"), command=command):
            cast.until(lambda: cast.series("gpumem_unknown", **labels) == [1])
    assert "usedBytes" not in cast.memory()


def test_the_agent_tells_the_parts_of_a_card(cast: Cast, node: Node, tmp_path: Path) -> None:
    agent_node = "agent-7"
    with node.hold(3072):
        command = [sys.executable, "-m", "gpumem_sidecar", "--agent"]
        token = cast.agent(agent_node)
        with running(node.folder, cast, tmp_path, token=token, command=command):
            cast.until(lambda: cast.series("gpumem_gpu_total_bytes", node=agent_node))
            parts = {
                part: cast.series(f"gpumem_{part}_bytes", node=agent_node)
                for part in ("gpu_total", "gpu_reserved", "gpu_attributed", "unattributed")
            }
    assert parts == {
        "gpu_total": [143771 * MIB],
        "gpu_reserved": [615 * MIB],
        "gpu_attributed": [0],
        "unattributed": [3072 * MIB],
    }

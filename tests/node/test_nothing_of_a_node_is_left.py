"""However a caller ends, a node's processes, mounts, network and cgroups go, with pods running."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster_processes import Processes, caller
from devcluster import Cluster
from devcluster.node import Node, cgroups
from devcluster.registry import find_record, records, stop_cluster

pytestmark = pytest.mark.cluster

PROGRAM = """
import pathlib, sys, time
sys.path.insert(0, "tests")
from devcluster import Cluster
from devcluster.node import Node
from node.workload import run_pause

with Cluster.start(pathlib.Path(sys.argv[1])) as cluster, Node.start(cluster) as node:
    run_pause(node, "left")
    print(node.pid, flush=True)
    time.sleep(600)
"""


@dataclass(frozen=True)
class Running:
    """A node with a pod on it, whose caller waits; seen from outside."""

    caller: subprocess.Popen[str]
    root: Path
    keeper: int
    processes: Processes

    def traces(self) -> list[str]:
        """What this machine still shows of it."""
        mounts = Path("/proc/self/mountinfo").read_text()
        found = [line for line in mounts.splitlines() if str(self.root) in line]
        found += [f"cgroup {path}" for path in self._cgroups()]
        if self.root.exists():
            found.append(f"folder {self.root}: {sorted(self.root.iterdir())}")
        return found

    def _cgroups(self) -> list[Path]:
        pattern = f"{cgroups.PREFIX}{self.keeper}-*"
        return [path for top in cgroups.hierarchies() for path in top.glob(pattern)]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    root = tmp_path / "cluster"
    with caller("-c", PROGRAM, root) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the caller ended without a node"
        inside = processes_in_the_namespace_of(int(line))
        keeper = parent_of(parent_of(int(line)))
        assert len(inside) >= 6, "init, four components, and a pod's shim and process"
        yield Running(process, root, keeper, Processes([keeper, *inside]))


def processes_in_the_namespace_of(first: int) -> list[int]:
    namespace = Path(f"/proc/{first}/ns/pid").readlink()
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if Path(f"/proc/{name}/ns/pid").readlink() == namespace:
                found.append(int(name))
        except OSError:
            continue  # It is gone by now, or not ours to look at.
    return found


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.fixture
def network_before() -> tuple[str, str]:
    return network()


def network() -> tuple[str, str]:
    """This machine's firewall and its routes, other nodes' left out."""
    rules = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True).stdout
    routes = subprocess.run(["ip", "route"], capture_output=True, text=True).stdout
    return rules, "".join(line for line in routes.splitlines(True) if "gpumem" not in line)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGKILL, id="killed"),
        pytest.param(signal.SIGINT, id="interrupted with Ctrl-C"),
    ],
)
def test_a_node_ends_with_its_caller(
    network_before: tuple[str, str], running: Running, number: signal.Signals
) -> None:
    assert network() == network_before, "a node changes nothing of this machine's own network"
    assert running.traces()

    running.caller.send_signal(number)
    running.processes.wait_until_gone()
    running.caller.wait()
    wait_for_the_cluster(running.root)

    assert running.traces() == []
    assert network() == network_before


def test_a_killed_keeper_leaves_cgroups_alone_until_the_next_node(running: Running) -> None:
    os.kill(running.keeper, signal.SIGKILL)
    running.processes.wait_until_gone()
    assert [trace for trace in running.traces() if trace.startswith("cgroup")]

    stop_cluster(find_record(running.root))
    with Cluster.start() as cluster, Node.start(cluster):
        assert running.traces() == []


def wait_for_the_cluster(root: Path) -> None:
    """Its keeper may still be ending, and removes its folder last."""
    for record in records():
        if record.root == str(root) and record.running:
            Processes([record.pid]).wait_until_gone()

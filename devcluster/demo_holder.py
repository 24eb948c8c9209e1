"""Owns the cluster of the demo: control plane, installed chart, simulated node.

Its caller holds the other ends of standard input and output. One line comes out: where everything
is, or why it could not be had. The end of the input ends the cluster, unless the line `keep` came
before it: then `python -m devcluster stop` does.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from devcluster.balancer import Balancer
from devcluster.binaries import find_binaries
from devcluster.controlplane import Cluster
from devcluster.failure import ClusterError
from devcluster.installation import Installation
from devcluster.leader_service import serve_leader
from devcluster.pod_addresses import PodAddresses
from devcluster.roleprocess import free_ports
from devcluster.sandbox import why_not
from devcluster.simulated_driver import Driver, create_state, numbered_device
from devcluster.simulated_kubelet import SimulatedKubelet
from devcluster.simulated_node import SimulatedGpuNode
from devcluster.upgrades import Upgrades

CHECK_SECONDS = 1.0
CARD_MIB = 81920
LIVE_NODES = {"live-node": "580.159.03", "old-node": "550.54.14"}
"""Drivers by the nodes that have them. The older one hides from a pod what its processes hold."""


def main(folder: Path) -> int:
    signal.signal(signal.SIGTERM, _leave)
    try:
        _run(folder)
    except (KeyboardInterrupt, BrokenPipeError):
        return 0
    except ClusterError as error:
        return _fail(str(error))
    except Exception:
        return _fail(traceback.format_exc())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _run(folder: Path) -> None:
    with ExitStack() as stack:
        enter = stack.enter_context
        pods = enter(PodAddresses(folder))
        cluster = enter(Cluster.start(folder / "cluster", apiserver_flags=pods.apiserver_flags))
        [port] = free_ports(1)
        report = {"report": {"url": f"https://127.0.0.1:{port}/v1/reports"}}
        installation = enter(Installation.start(cluster, values=report))
        stack.callback(Balancer(port, installation.report_ports).close)
        enter(SimulatedGpuNode(cluster, "gpu-node", cards=2, mib_per_card=CARD_MIB, replicas=4))
        serve_leader(installation, pods, node="gpu-node")
        if not why_not():
            enter(_live_nodes(cluster, folder))
        upgrades = enter(Upgrades(installation))
        programs = find_binaries()
        _tell(
            kubeconfig=str(cluster.kubeconfig),
            root=str(cluster.root),
            logs=str(installation.webhook_log.parent),
            kubectl=str(programs["kubectl"]),
            helm=str(programs["helm"]),
            no_live_use=why_not(),
        )
        _serve(cluster, upgrades)


@contextmanager
def _live_nodes(cluster: Cluster, folder: Path) -> Iterator[None]:
    """Nodes on which pods hold memory, one of them with an old driver."""
    with ExitStack() as stack:
        drivers = {}
        for name, version in LIVE_NODES.items():
            node = SimulatedGpuNode(cluster, name, cards=1, mib_per_card=CARD_MIB, replicas=4)
            stack.enter_context(node)
            cluster.kubectl("taint", "node", name, "simulation=live:NoSchedule")
            cluster.kubectl("label", "node", name, f"simulation={name}")
            card = numbered_device(0, total_mib=CARD_MIB)
            drivers[name] = create_state(folder / name, Driver((card,), version=version))
        stack.enter_context(SimulatedKubelet(cluster, drivers))
        yield


def _serve(cluster: Cluster, upgrades: Upgrades) -> None:
    caller = sys.stdin.fileno()
    watched: list[int | Upgrades] = [caller, upgrades]
    while True:
        ready = select.select(watched, [], [], CHECK_SECONDS)[0]
        if caller in ready:
            if not os.read(caller, 64):
                return
            cluster.hold()
            watched.remove(caller)
            _tell(kept=str(cluster.root))
        if upgrades in ready:
            upgrades.take_over()
        cluster.check()


def _tell(**what: str) -> None:
    print(json.dumps(what), flush=True)


def _fail(why: str) -> int:
    try:
        _tell(error=why)
    except BrokenPipeError:
        print(why, file=sys.stderr)
    return 1


def _leave(_number: int, _frame: FrameType | None) -> None:
    # Once is enough: a second signal must not interrupt the clearing up.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

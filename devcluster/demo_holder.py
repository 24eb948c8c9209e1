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
from pathlib import Path
from types import FrameType

from devcluster.binaries import find_binaries
from devcluster.controlplane import Cluster
from devcluster.failure import ClusterError
from devcluster.installation import Installation
from devcluster.simulated_node import SimulatedGpuNode
from devcluster.upgrades import Upgrades

CHECK_SECONDS = 1.0


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
    with (
        Cluster.start(folder / "cluster") as cluster,
        Installation.start(cluster) as installation,
        SimulatedGpuNode(cluster, "gpu-node", cards=2, mib_per_card=81920, replicas=4),
        Upgrades(installation) as upgrades,
    ):
        programs = find_binaries()
        _tell(
            kubeconfig=str(cluster.kubeconfig),
            root=str(cluster.root),
            logs=str(installation.webhook_log.parent),
            kubectl=str(programs["kubectl"]),
            helm=str(programs["helm"]),
        )
        _serve(cluster, upgrades)


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

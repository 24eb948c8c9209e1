"""Owns the cluster of the demo: control plane, installed chart, simulated node."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from devcluster.binaries import find_binaries
from devcluster.controlplane import Cluster
from devcluster.failure import ClusterError
from devcluster.installation import Installation
from devcluster.simulated_node import SimulatedGpuNode

CHECK_SECONDS = 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _leave)
    try:
        with (
            Cluster.start(options.folder / "cluster") as cluster,
            Installation.start(cluster),
            SimulatedGpuNode(cluster, "gpu-node", cards=2, mib_per_card=81920, replicas=4),
        ):
            _announce(cluster)
            if options.keep:
                _wait_for_the_end_of(cluster)
            else:
                sys.stdin.read()
    except KeyboardInterrupt:
        pass
    except ClusterError:
        # Somebody stopped the cluster: then there is nothing left to take away.
        if not options.keep or (options.folder / "cluster").exists():
            raise
    shutil.rmtree(options.folder, ignore_errors=True)
    return 0


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _announce(cluster: Cluster) -> None:
    ready = {
        "kubeconfig": str(cluster.kubeconfig),
        "root": str(cluster.root),
        "kubectl": str(find_binaries()["kubectl"]),
    }
    print(json.dumps(ready), flush=True)


def _wait_for_the_end_of(cluster: Cluster) -> None:
    while True:
        time.sleep(CHECK_SECONDS)
        cluster.check()


if __name__ == "__main__":
    sys.exit(main())

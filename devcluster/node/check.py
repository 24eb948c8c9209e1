"""`python -m devcluster.node.check`: whether a real node runs a pod here, step by step.

For a machine that was never tried: it first says what the machine is, so that what was printed
alone tells why it did not work.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from devcluster.controlplane import Cluster
from devcluster.failure import ClusterError
from devcluster.node import cgroups
from devcluster.node.containerd import PAUSE_IMAGE, snapshotter_for
from devcluster.node.node import Node
from devcluster.node.requirements import NODE_PACKAGES, cni_folder, find_program, why_not

POD_SECONDS = 60
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "check"},
    "spec": {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": PAUSE_IMAGE, "imagePullPolicy": "Never"}],
    },
}


def main() -> int:
    for name, value in machine_facts().items():
        print(f"{name + ':':<16}{value}")
    if (reason := why_not()) is not None:
        print(f"no node can run here: {reason}", file=sys.stderr)
        return 1
    try:
        _try()
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def machine_facts() -> dict[str, str]:
    """What decides whether a node can run, as this machine says it."""
    programs = {name: find_program(name) or "missing" for name in NODE_PACKAGES}
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": f"{platform.python_version()} {sys.executable}",
        "user": str(os.geteuid()),
        "capabilities": _capabilities(),
        "cgroups": _cgroups(),
        "snapshotter": snapshotter_for(Path.cwd()),
        "programs": ", ".join(f"{name} {path}" for name, path in programs.items()),
        "plugins": str(cni_folder() or "missing"),
    }


def _capabilities() -> str:
    status = Path("/proc/self/status").read_text().splitlines()
    return next((line.split()[1] for line in status if line.startswith("CapEff:")), "unknown")


def _cgroups() -> str:
    tops = cgroups.hierarchies()
    if not tops:
        return f"none that can be written below {cgroups.ROOT}"
    if tops != [cgroups.ROOT]:
        return f"version 1: {' '.join(top.name for top in tops)}"
    available = (cgroups.ROOT / "cgroup.controllers").read_text().strip()
    handed_down = (cgroups.ROOT / "cgroup.subtree_control").read_text().strip()
    return f"version 2: {available} (handed down: {handed_down or 'none'})"


def _try() -> None:
    started = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - started:5.1f} s  {what}", flush=True)

    say("starting a control plane")
    with Cluster.start() as cluster:
        say("it is ready; starting a node")
        with Node.start(cluster) as node:
            say(f"it is Ready at {node.address}; starting a pod")
            _run_pod(cluster)
            say("it is Ready; ending all")
    say("done")


def _run_pod(cluster: Cluster) -> None:
    cluster.kubectl("create", "-f", "-", input=json.dumps(POD))
    wait = ["wait", "pod/check", "--for=condition=Ready", f"--timeout={POD_SECONDS}s"]
    if cluster.kubectl(*wait, check=False).returncode != 0:
        described = cluster.kubectl("describe", "pod", "check").stdout
        raise ClusterError(f"After {POD_SECONDS} s the pod is not Ready:\n{described}")


if __name__ == "__main__":
    sys.exit(main())

"""Most machines have cgroups of version 2 alone; those with both kinds can try either."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cluster_processes import REPOSITORY
from devcluster.node import cgroups

pytestmark = pytest.mark.cluster

VERSION_2 = cgroups.ROOT / "unified"
"""Where machines with both kinds have the second one."""

PROGRAM = """
from devcluster import Cluster
from devcluster.node import Node

with Cluster.start() as cluster, Node.start(cluster) as node:
    print(node.run("stat", "-f", "-c", "%T", "/sys/fs/cgroup").stdout.strip())
    print(*node.run("sh", "-c", "ls -d /sys/fs/cgroup/devcluster-*/kubepods").stdout.split())
"""


@pytest.mark.skipif(not VERSION_2.is_dir(), reason="this machine has one version of cgroups")
def test_a_node_is_ready_on_version_2_too() -> None:
    """No pod: on such a machine the controllers of CPU and memory belong to version 1."""
    bind = f'mount --bind {VERSION_2} {cgroups.ROOT} && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", bind, "sh", sys.executable, "-c", PROGRAM],
        cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True, text=True,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    file_system, kubepods = done.stdout.splitlines()
    assert file_system == "cgroup2fs"
    assert Path(kubepods).name == "kubepods"
    # The same folder, under the name that it has outside that program's mounts.
    assert not (VERSION_2 / Path(kubepods).parent.name).exists(), "nothing is left of it"

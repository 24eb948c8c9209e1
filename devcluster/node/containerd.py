"""The configuration of containerd and of its network plugins, as text.

Paths are the usual ones, because the node has folders of its own mounted there.
"""

from __future__ import annotations

import json
from pathlib import Path

from devcluster.node.cdi import FOLDER as CDI_FOLDER
from devcluster.node.network import Block
from devcluster.node.pause import PAUSE_IMAGE as PAUSE_IMAGE

SOCKET = Path("/run/containerd/containerd.sock")
CONFIGURATION = Path("/run/containerd.toml")
NETWORKS = Path("/run/cni")


NVIDIA = "nvidia"
"""Name of the runtime, and of the RuntimeClass, with the simulated driver in every container."""


def configuration(
    *, cni_folder: Path, snapshotter: str, base_specification: Path | None, everywhere: bool
) -> str:
    """For version 2 of containerd. Sources: its docs/cri/config.md.

    `base_specification` is what the specification of a container of the runtime `nvidia` begins
    with, and of any container where it is so `everywhere`."""
    base = f'base_runtime_spec = "{base_specification}"' if base_specification else ""
    runtimes = _runtime("runc", base if everywhere else "") + _runtime(NVIDIA, base)
    return f"""\
version = 3

[plugins."io.containerd.cri.v1.runtime"]
  # runc can not lower its score where CAP_SYS_RESOURCE is missing, and would fail.
  restrict_oom_score_adj = true
  cdi_spec_dirs = ["{CDI_FOLDER}"]
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{cni_folder}"]
    conf_dir = "{NETWORKS}"
{runtimes}
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "{snapshotter}"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{PAUSE_IMAGE}"
"""


def _runtime(name: str, base: str) -> str:
    table = f'plugins."io.containerd.cri.v1.runtime".containerd.runtimes.{name}'
    return f"""\
  [{table}]
    runtime_type = "io.containerd.runc.v2"
    {base}
    [{table}.options]
      SystemdCgroup = false
"""


def network_list(block: Block) -> str:
    """One bridge for all pods. Nothing is masqueraded: the machine has a route to the pods."""
    bridge = {
        "type": "bridge",
        "bridge": "pods",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": str(block.pods)}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge]}, indent=2)


def snapshotter_for(folder: Path) -> str:
    """overlayfs, except on an overlay file system (inside a container), which can not carry one."""
    return "native" if _file_system(folder) == "overlay" else "overlayfs"


def _file_system(folder: Path) -> str:
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    resolved = folder.resolve()
    holding = [m for m in mounts if resolved.is_relative_to(m[1].replace("\\040", " "))]
    # Of two on one mount point, the later hides the earlier.
    return max(enumerate(holding), key=lambda m: (len(Path(m[1][1]).parts), m[0]))[1][2]

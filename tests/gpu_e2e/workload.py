"""Containers whose programs use a GPU: their image, and where their Python comes from.

On real hardware it is the machine's own Python with the frameworks in it, mounted read-only into an
image that has nothing: they are many GiB, and an image of them would be in no cache.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.node.containerd import PAUSE_IMAGE
from gpu_container import FRAMEWORKS, libcuda_folder
from node.workload import sidecar_image

HERE = Path(__file__).parent
CARD = "/e2e"
"""Where programs find the module `card`."""
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/alternatives", "/etc/ld.so.cache")
_ASK = """
import importlib.util, json, site, sys
found = [name for name in ("torch", "jax", "cupy") if importlib.util.find_spec(name)]
own = [path for path in sys.path if path == site.getusersitepackages()]
print(json.dumps([found, [sys.prefix, sys.base_prefix, *filter(None, sys.path)], own]))
"""


@dataclass(frozen=True)
class Workload:
    image: str
    python: str
    frameworks: tuple[str, ...]
    """Those that its Python has."""
    mounts: Mapping[str, str]
    """Path on the node by the path in the container."""
    variables: Mapping[str, str]

    def pod(self, name: str, program: str, resources: Mapping[str, Any]) -> dict[str, Any]:
        """A pod with one container `main` that runs a Python program."""
        names = {target: f"volume-{number}" for number, target in enumerate(self.mounts)}
        volumes: list[dict[str, Any]] = [
            {"name": names[target], "hostPath": {"path": source}}
            for target, source in self.mounts.items()
        ]
        mounts: list[dict[str, Any]] = [
            {"name": names[target], "mountPath": target, "readOnly": True} for target in self.mounts
        ]
        container = {
            "name": "main",
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "command": [self.python, "-c", program],
            "env": [{"name": key, "value": value} for key, value in self.variables.items()],
            "resources": {"limits": dict(resources)},
            "volumeMounts": [*mounts, {"name": "scratch", "mountPath": "/tmp"}],
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 1,
                "volumes": [*volumes, {"name": "scratch", "emptyDir": {}}],
                "containers": [container],
            },
        }


def of_this_machine(python: str) -> Workload:
    """Programs run by a Python of this machine, in containers that see its system folders."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-c", _ASK], capture_output=True, text=True, check=True, env=variables
    )
    frameworks, paths, own = json.loads(done.stdout)
    tops = _outermost([*SYSTEM, *paths, str(Path(python).resolve().parent)])
    return Workload(
        PAUSE_IMAGE,
        python,
        tuple(frameworks),
        {CARD: str(HERE / "real"), **{top: top for top in tops}},
        # Of a user's own packages, whose home another user does not know.
        {
            "PYTHONPATH": ":".join([CARD, *own]),
            "PATH": "/usr/bin:/bin",
            "HOME": "/tmp",
            "USER": "root",
        },
    )


def _outermost(paths: Sequence[str]) -> list[str]:
    """Those that exist, without those below another one."""
    there = sorted({path.rstrip("/") for path in paths if Path(path).exists()}, key=len)
    return [
        path
        for path in there
        if not any(path != other and Path(path).is_relative_to(other) for other in there)
    ]


def simulated() -> Workload:
    """Programs with simulated frameworks, run by the Python of the sidecar's image."""
    library = "/library"
    cuda = libcuda_folder()
    # A pod's user is another one.
    cuda.chmod(0o755)
    return Workload(
        sidecar_image(),
        "python",
        ("torch", "cupy"),
        {CARD: str(HERE / "simulated"), library: str(FRAMEWORKS), "/cuda": str(cuda)},
        {"PYTHONPATH": f"{CARD}:{library}", "LD_LIBRARY_PATH": "/cuda"},
    )

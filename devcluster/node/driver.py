"""The simulated NVIDIA driver in every container, as NVIDIA's container toolkit brings a real one.

Either every container gets the library and all cards, which is what a sidecar would see that is
given NVML in one way or another; or, as with NVIDIA's toolkit in CDI mode, only those to which a
device plugin gave a GPU, and those of the RuntimeClass `nvidia`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from devcluster.node.cdi import Edits
from devcluster.simulated_driver.build import LIBRARY, PROGRAM, build

BASE_SPECIFICATION = Path("/run/base-specification.json")
STATE = Path("/simulated-driver")
"""Where containers find the folder of the driver's state."""
_VARIABLE = ("SIMULATED_NVIDIA_DRIVER", str(STATE))


def base_specification(default: str, *, library: Path, program: Path, state: Path) -> str:
    """containerd's default specification of a container (JSON), with the driver added.

    The paths are those that the node finds the driver's parts and its state at."""
    specification: dict[str, Any] = json.loads(default)
    specification["mounts"] += [
        {
            "type": "bind",
            "source": source,
            "destination": destination,
            "options": ["rbind", "rprivate", "ro" if read_only else "rw"],
        }
        for source, destination, read_only in _mounts(library, program, state)
    ]
    specification["process"]["env"] = ["=".join(_VARIABLE)]
    return json.dumps(specification)


def edits(state: Path) -> Edits:
    """What brings the driver into a container, as CDI says it; of every card the same."""
    built = build()
    return Edits((_VARIABLE,), mounts=_mounts(built.library, built.program, state))


def _mounts(library: Path, program: Path, state: Path) -> tuple[tuple[str, str, bool], ...]:
    """Path on the node, path in the container, whether it is read-only."""
    return (
        # Where every loader looks, whatever the image's architecture or cache of libraries.
        (str(library), f"/usr/lib/{LIBRARY}", True),
        (str(program), f"/usr/bin/{PROGRAM}", True),
        (str(state), str(STATE), False),
    )

"""The simulated NVIDIA driver in every container, as NVIDIA's container toolkit brings a real one.

The toolkit looks at a container's NVIDIA_VISIBLE_DEVICES first; here all get the library and all
cards, which is what a sidecar would see that is given NVML in one way or another.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from devcluster.simulated_driver.build import LIBRARY, PROGRAM

BASE_SPECIFICATION = Path("/run/base-specification.json")
STATE = Path("/simulated-driver")
"""Where containers find the folder of the driver's state."""


def base_specification(default: str, *, library: Path, program: Path, state: Path) -> str:
    """containerd's default specification of a container (JSON), with the driver added.

    The paths are those that the node finds the driver's parts and its state at."""
    specification: dict[str, Any] = json.loads(default)
    specification["mounts"] += [
        # Where every loader looks, whatever the image's architecture or cache of libraries.
        _bind(library, Path("/usr/lib") / LIBRARY, "ro"),
        _bind(program, Path("/usr/bin") / PROGRAM, "ro"),
        _bind(state, STATE, "rw"),
    ]
    specification["process"]["env"] = [f"SIMULATED_NVIDIA_DRIVER={STATE}"]
    return json.dumps(specification)


def _bind(source: Path, destination: Path, mode: str) -> dict[str, Any]:
    options = ["rbind", "rprivate", mode]
    return {
        "type": "bind",
        "source": str(source),
        "destination": str(destination),
        "options": options,
    }

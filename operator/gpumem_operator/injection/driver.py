"""The driver's own limit on a container: NVIDIA_GPU_MEMORY_REQUEST and _LIMIT, in MiB.

NVIDIA's container toolkit (from 1.20.1) reads both and sets a hard limit on the container's cgroup.
Both are needed, and equal: with one missing it does nothing, with a larger request the container
does not start, and neither does it on cgroup v1. There is no such limit on MIG
(cmd/nvidia-cdi-hook/apply-cuda-memory-limits of NVIDIA/nvidia-container-toolkit). An author's own
are always removed, because they could raise the limit. Not run on hardware.
"""

from typing import Final

from gpumem_operator import names
from gpumem_operator.api.pods import ContainerFacts
from gpumem_operator.api.quantity import MIB
from gpumem_operator.injection.environment import Own, Variables
from gpumem_operator.injection.target import Target

_BOTH: Final = (names.DRIVER_REQUEST_ENV, names.DRIVER_LIMIT_ENV)
_REMOVED: Final = Variables(removed=frozenset(_BOTH))


def variables(target: Target | None = None) -> Variables:
    """Ours where the target has a limit that the driver shall hold; else only none of an author."""
    if target is None or not target.driver_limits:
        return _REMOVED
    mib = (target.frozen_bytes or 0) // MIB
    if not mib:
        return _REMOVED
    wanted = tuple(Own(name, str(mib)) for name in _BOTH)
    return Variables(wanted, removed=_REMOVED.removed, added=_BOTH)


def can_be_limited(container: ContainerFacts) -> bool:
    """Whether a limit on whole cards can apply: all its GPUs are cards, not MIG slices."""
    return bool(container.gpus) and all(gpu.profile_bytes is None for gpu in container.gpus)

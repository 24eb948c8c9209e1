"""The driver's own limit: an author's variables for it are always removed.

NVIDIA's container toolkit (from 1.20.1) reads NVIDIA_GPU_MEMORY_REQUEST and _LIMIT, in MiB, and
sets a hard limit on the container's cgroup. An author who set them could raise that limit.
"""

from typing import Final

from gpumem_operator import names
from gpumem_operator.injection.environment import Variables

_REMOVED: Final = Variables(removed=frozenset({names.DRIVER_REQUEST_ENV, names.DRIVER_LIMIT_ENV}))


def variables() -> Variables:
    """Removes what the author set; nothing of ours replaces it."""
    return _REMOVED

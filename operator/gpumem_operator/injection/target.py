"""One container that receives settings, and what is known about it."""

from dataclasses import dataclass

from gpumem_operator.api.policy import DefaultPolicySpec
from gpumem_operator.api.quantity import floor_to_mib


@dataclass(frozen=True)
class Target:
    """A GPU container of a pod that a policy decides for."""

    container_name: str
    gpu_count: int
    frozen_bytes: int | None
    """Limit per GPU; None where nothing below the whole card or slice was declared."""
    spec: DefaultPolicySpec
    image_python_path: str
    processes_per_gpu: int
    driver_limits: bool = False
    """Whether the driver itself shall hold the limit, and can on such GPUs."""

    @property
    def process_bytes(self) -> int | None:
        """What one process may hold on one GPU: the limit, shared by the announced processes."""
        if self.frozen_bytes is None:
            return None
        return process_share(self.frozen_bytes, self.processes_per_gpu)

    @property
    def cap_bytes(self) -> int | None:
        """What a framework's allocator may hold in one process: without the context reserve.

        None without a limit, and where the reserve leaves nothing: such a cap is never passed on.
        """
        return allocator_cap(self.process_bytes, self.spec.limits.context_reserve_bytes)


def process_share(limit_bytes: int, processes_per_gpu: int) -> int:
    """What each of the announced processes may hold of a limit per GPU."""
    return floor_to_mib(limit_bytes // processes_per_gpu)


def allocator_cap(process_bytes: int | None, reserve_bytes: int) -> int | None:
    """What the reserve leaves of a process's share; None where that is nothing."""
    if process_bytes is None or process_bytes <= reserve_bytes:
        return None
    return process_bytes - reserve_bytes

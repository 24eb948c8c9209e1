"""What a sender knows at one moment, in the terms of the report. Pure data."""

from __future__ import annotations

from typing import Literal, NamedTuple

from gpumem_sidecar.reading import Reason


class Cap(NamedTuple):
    """The most that a framework's allocator may hold on a GPU or MIG instance."""

    gpu: str
    cap_bytes: int


class Framework(NamedTuple):
    """A framework that a process has imported, and what became of its cap."""

    name: str
    version: str | None
    caps: tuple[Cap, ...] = ()
    not_capped: str | None = None
    """Why it has no cap on the GPUs that `caps` does not list."""
    cap_hits: int | None = None
    """Allocations so far that failed on a cap; None is unknown."""
    reclaim: str | None = None


class Server(NamedTuple):
    """An inference server, and what became of the share of the card that it takes."""

    name: str
    version: str | None
    argument: str
    asked: str
    applied: str
    reason: str | None = None
    """Why it does not bound what the server takes."""


class Shim(NamedTuple):
    """What the shim in a process says about it: the workload's own claim."""

    frameworks: tuple[Framework, ...] = ()
    limit_bytes: int | None = None
    context_reserve_bytes: int | None = None
    processes_per_gpu: int | None = None
    outside: tuple[tuple[str, int], ...] = ()
    """Bytes beside all allocators by GPU, where the process could measure them."""
    servers: tuple[Server, ...] = ()

    def on(self, gpu: str) -> Shim:
        """What of it is about one GPU."""
        frameworks = (
            one._replace(caps=tuple(cap for cap in one.caps if cap.gpu == gpu))
            for one in self.frameworks
        )
        outside = tuple(pair for pair in self.outside if pair[0] == gpu)
        return self._replace(frameworks=tuple(frameworks), outside=outside)


class Gpu(NamedTuple):
    """A card or MIG instance; None is unknown."""

    uuid: str
    number: int
    """Index of the card, or of the instance on its card."""
    model: str = ""
    parent: str | None = None
    total_bytes: int | None = None
    reserved_bytes: int | None = None
    used_bytes: int | None = None
    unknown: Reason | None = None


class Process(NamedTuple):
    """A process on a card: either `bytes`, or `unknown` with the reason; or, with the source Shim,
    what the process claims, beside the reason why that is all."""

    pid: int
    gpu: str
    start_time: int | None = None
    pod_uid: str | None = None
    container: str | None = None
    container_id: str | None = None
    bytes: int | None = None
    unknown: Reason | None = None
    source: Literal["NVML", "Shim"] = "NVML"
    mps: bool = False
    shim: Shim | None = None
    shim_left_out: bool = False
    """Whether there may be a `shim` that is not told."""
    mps_limit_bytes: int | None = None
    """The pinned limit that a client of MPS was started with."""
    driver_limit_bytes: int | None = None
    """The hard limit of its container's cgroup, as the driver reads it back."""


class Assignment(NamedTuple):
    """GPUs that the kubelet gave to a container; it names pods without their UID."""

    pod_namespace: str
    pod_name: str
    container: str
    gpus: tuple[str, ...]
    """UUIDs of cards and MIG instances."""
    unnamed: int = 0
    """How many more it has that could not be named."""


class Picture(NamedTuple):
    """Everything; `unknown` says why it is not the whole."""

    driver_version: str | None = None
    unknown: Reason | None = None
    gpus: tuple[Gpu, ...] = ()
    processes: tuple[Process, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    driver_limits: Literal["Supported", "Unsupported"] | None = None

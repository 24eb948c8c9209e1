"""What a sender knows at one moment, in the terms of the report. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from gpumem_sidecar.reading import Reason


class Framework(NamedTuple):
    """A framework that a process has imported."""

    name: str
    version: str | None


class Shim(NamedTuple):
    """What the shim in a process says about it: the workload's own claim."""

    frameworks: tuple[Framework, ...] = ()
    limit_bytes: int | None = None
    applied: Mapping[str, str] | None = None


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
    """A process on a card: either `bytes`, or `unknown` with the reason."""

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


class Assignment(NamedTuple):
    """Cards that the kubelet gave to a container."""

    pod_uid: str
    container: str
    gpus: tuple[str, ...]


class Picture(NamedTuple):
    """Everything; `unknown` says why it is not the whole."""

    driver_version: str | None = None
    unknown: Reason | None = None
    gpus: tuple[Gpu, ...] = ()
    processes: tuple[Process, ...] = ()
    assignments: tuple[Assignment, ...] = ()

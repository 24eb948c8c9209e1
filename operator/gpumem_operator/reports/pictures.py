"""What a sender saw last, as the core keeps it: small, immutable, apart from the wire format."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from gpumem_operator.reports.gpu_names import Names
from gpumem_operator.reports.reasons import (
    NEWER_REASON,
    NOT_AVAILABLE,
    REPORT_TOO_LARGE,
    TOO_MANY_GPUS,
)
from gpumem_operator.reports.report import SENDERS_REASONS, Gpu, Process, Report, Shim

UNTOLD_AGE_SECONDS: Final = 30.0
"""Of a picture whose sender tells no age: so long a sender may be silent before it repeats one."""
LARGEST_GPU: Final = 2**40
"""Bytes: a process holds no more on one GPU, whatever is said. The largest has a quarter of it."""

SenderKind = Literal["NodeAgent", "Sidecar"]


class Sender(NamedTuple):
    """Who reports: an agent for a node by its name, or a sidecar for a pod by its uid."""

    kind: SenderKind
    id: str


@dataclass(frozen=True, slots=True)
class Amount:
    """Bytes that are known, or why they are not: exactly one of the two is set."""

    bytes: int | None
    unknown: str | None = None
    at_least: int = 0
    """Of what is not known, the part that is."""

    @property
    def known(self) -> bool:
        return self.bytes is not None

    @property
    def floor(self) -> int:
        """Bytes that are held for sure, or by the workload's own word."""
        return self.at_least if self.bytes is None else self.bytes

    def partly(self, reason: str) -> "Amount":
        """The same as a part of something that is not known for this reason."""
        return Amount(None, reason, self.floor)


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One card or MIG instance."""

    uuid: str
    model: str
    parent: str | None
    total_bytes: int | None
    reserved_bytes: int | None
    used_bytes: int | None
    unknown: str | None


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """One process on one GPU."""

    pid: int
    gpu: str
    pod_uid: str | None
    container: str | None
    container_id: str | None
    amount: Amount
    shim: bool
    """Whether the amount is the workload's own claim, and not what NVML says."""
    start_time: int | None = None
    mps: bool = False
    claim: Shim | None = None
    """What the process says about its caps; its own word as well."""
    claim_left_out: bool = False
    """Whether it says something that did not fit into the report."""
    mps_limit_bytes: int | None = None
    driver_limit_bytes: int | None = None
    """Of the whole container, as read back from the driver."""


@dataclass(frozen=True, slots=True)
class Given:
    """GPUs that kubelet handed to one container."""

    gpus: frozenset[str]
    whole: bool
    """Whether these are all that it has."""


NOTHING_GIVEN = Given(frozenset(), whole=False)


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that one sender saw at one moment."""

    heard: float
    """When it last said that this holds, in the caller's seconds."""
    sampled: float
    """When it last looked, in the same seconds: never after `heard`."""
    unknown: str | None
    """Why the picture is not whole."""
    gpus: tuple[GpuReading, ...]
    processes: tuple[ProcessReading, ...]
    assignments: Mapping[tuple[str, str, str], Given]
    """By namespace and name of the pod, and the container's name."""
    driver_limits: bool | None = None
    """Whether the driver can limit containers there; None where nobody looked."""


def picture_of(report: Report, sender: Sender, now: float, names: Names) -> Picture:
    """The picture in a full report that arrived at `now`; `names` says what GPUs may be called.

    What a sidecar says of another pod is left out before readings of one process are compared:
    else it could displace what it says of its own.
    """
    sizes = {gpu.uuid: gpu.total_bytes for gpu in report.gpus if gpu.total_bytes is not None}
    processes = [
        process
        for process in report.processes
        if sender.kind == "NodeAgent" or process.pod_uid in (None, sender.id)
    ]
    return Picture(
        heard=now,
        sampled=sampled_at(report, now),
        unknown=REPORT_TOO_LARGE if report.processes_left_out else _reason(report.unknown),
        gpus=tuple(map(_gpu, report.gpus)),
        processes=tuple(
            _named(one, names) for one in _best(processes, sizes, report.unknown).values()
        ),
        assignments={
            (given.pod_namespace, given.pod_name, given.container): Given(
                frozenset(given.gpus), whole=given.unnamed == 0
            )
            for given in report.assignments
        },
        driver_limits=None if report.driver_limits is None else report.driver_limits == "Supported",
    )


def sampled_at(report: Report, now: float) -> float:
    """When the picture of a report that arrived at `now` was begun, in the same seconds."""
    if report.age_milliseconds is None:
        return now - UNTOLD_AGE_SECONDS
    return now - report.age_milliseconds / 1000


def _reason(told: str | None) -> str | None:
    return told if told is None or told in SENDERS_REASONS else NEWER_REASON


def _amount(process: Process, size: int, unknown: str | None) -> Amount:
    """What it holds on a GPU of this size; more than that nobody can hold."""
    if process.bytes is not None and process.bytes > size:
        return Amount(None, NOT_AVAILABLE)
    if process.source == "NVML":
        return Amount(process.bytes, _reason(process.unknown))
    # The workload's own word is no measurement.
    return Amount(None, _reason(process.unknown or unknown) or NOT_AVAILABLE, process.bytes or 0)


def _named(reading: ProcessReading, names: Names) -> ProcessReading:
    if not reading.gpu or names.takes(reading.gpu, claimed=reading.shim):
        return reading
    return replace(reading, gpu="", amount=reading.amount.partly(TOO_MANY_GPUS))


def _gpu(gpu: Gpu) -> GpuReading:
    return GpuReading(
        gpu.uuid,
        gpu.model,
        gpu.parent,
        gpu.total_bytes,
        gpu.reserved_bytes,
        gpu.used_bytes,
        _reason(gpu.unknown),
    )


def _best(
    processes: list[Process], sizes: Mapping[str, int], unknown: str | None
) -> dict[tuple[int, str], ProcessReading]:
    """One reading of each process on each GPU: NVML's before the shim's, known before unknown.

    `unknown`: why the whole report is not known."""
    found: dict[tuple[int, str], ProcessReading] = {}
    for process in processes:
        reading = ProcessReading(
            pid=process.pid,
            gpu=process.gpu,
            pod_uid=process.pod_uid,
            container=process.container,
            container_id=process.container_id,
            amount=_amount(process, min(sizes.get(process.gpu, LARGEST_GPU), LARGEST_GPU), unknown),
            shim=process.source == "Shim",
            start_time=process.start_time,
            mps=process.mps,
            claim=process.shim,
            claim_left_out=process.shim_left_out,
            mps_limit_bytes=process.mps_limit_bytes,
            driver_limit_bytes=process.driver_limit_bytes,
        )
        key = (process.pid, process.gpu)
        if key not in found or _rank(reading) < _rank(found[key]):
            found[key] = reading
    return found


def _rank(reading: ProcessReading) -> tuple[bool, bool, bool, int]:
    # A process without an amount makes its pod unknown, so a reading that names the pod goes first.
    # The last part makes the choice independent of the order in which a sender lists them.
    known = reading.amount.known
    return (
        not known,
        not known and reading.pod_uid is None,
        reading.shim,
        -reading.amount.floor,
    )

"""Who holds how much: the result of attribution, and what both kinds of senders' views share."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

from gpumem_operator.api.quantity import MIB, add_bytes
from gpumem_operator.reports.cards import Card
from gpumem_operator.reports.measured import MeasuredPod, bare_id
from gpumem_operator.reports.pictures import (
    LARGEST_GPU,
    Amount,
    GpuReading,
    Picture,
    ProcessReading,
)
from gpumem_operator.reports.reasons import NOT_AVAILABLE

UNNAMED: Final = ""
"""A container that could not be named, or a GPU that nothing says which it is."""

LESS_THAN_A_CONTEXT: Final = 64 * MIB
"""A CUDA context takes hundreds of MiB. A card in use by nobody shows a few as used."""

Source = Literal["NodeAgent", "Sidecar", "Shim"]


@dataclass(frozen=True, slots=True)
class GpuUse:
    """What one container holds on one GPU."""

    container: str
    gpu: str
    amount: Amount
    processes: tuple[ProcessReading, ...] = ()
    rest_is_unnamed: bool = False
    """What is not known of it is in the pod's row without a container's name."""
    astray: str = ""
    """How it is known that the GPU is not the container's own; empty where it may be."""

    @property
    def measured(self) -> int:
        """Bytes that are held by more than the workload's own word."""
        if self.amount.bytes is not None:
            return self.amount.bytes
        return add_bytes(one.amount.floor for one in self.processes if not one.shim)


@dataclass(frozen=True)
class PodUse:
    """What one pod holds."""

    pod: MeasuredPod
    rows: tuple[GpuUse, ...]
    """By container and GPU; every GPU container has at least one."""
    source: Source | None
    """Whose picture this is; None where nobody's is fresh."""

    @cached_property
    def total(self) -> Amount:
        """Over all containers and GPUs."""
        return add(
            Amount(row.amount.floor) if row.rest_is_unnamed else row.amount for row in self.rows
        )

    def of(self, container: str) -> Amount:
        """What one container holds, over its GPUs."""
        return add(row.amount for row in self.rows if row.container == container)


@dataclass(frozen=True, slots=True)
class Usage:
    """Everything that is known at one moment."""

    pods: Mapping[str, PodUse] = field(default_factory=dict)
    """By uid: every pod that was asked about."""
    cards: tuple[Card, ...] = ()
    """Cards that agents see, by node and uuid."""


def add(amounts: Iterable[Amount]) -> Amount:
    """The sum, at most the largest quantity; not known where any part is not."""
    parts = list(amounts)
    floor = add_bytes(amount.floor for amount in parts)
    first = next((amount.unknown for amount in parts if not amount.known), None)
    return Amount(floor) if first is None else Amount(None, first, floor)


Place = tuple[str, str]
"""A container's name and a GPU's uuid."""
Places = dict[Place, list[ProcessReading]]


def by_pod(
    pods: Mapping[str, MeasuredPod], processes: Iterable[ProcessReading]
) -> dict[str, Places]:
    """Processes of these pods by the pod's uid, and there by place."""
    held: dict[str, Places] = {}
    for process in processes:
        pod = pods.get(process.pod_uid or "")
        if pod is not None:
            place = (container_of(pod, process), process.gpu)
            held.setdefault(pod.uid, {}).setdefault(place, []).append(process)
    return held


def container_of(pod: MeasuredPod, process: ProcessReading) -> str:
    """The container as the pod's status and spec know it; a sender's word alone is no name."""
    if (name := pod.container_ids.get(bare_id(process.container_id or ""))) is not None:
        return name
    named = process.container or UNNAMED
    return named if named in pod.container_names else UNNAMED


def unlisted(picture: Picture) -> dict[str, str]:
    """GPUs on which there may be processes that nobody listed, and why.

    Where one process is listed, the list was read. Of a card that is divided, the instances are
    asked, and what the card itself can not tell (a sidecar may not read a whole one) is no loss.
    """
    listed = {process.gpu for process in picture.processes}
    divided = {gpu.parent for gpu in picture.gpus}
    return {
        gpu.uuid: gpu.unknown
        for gpu in picture.gpus
        if gpu.unknown is not None
        and gpu.uuid not in listed
        and gpu.uuid not in divided
        and not _is_empty(gpu)
    }


def _is_empty(gpu: GpuReading) -> bool:
    """Whether its own reading says that no process is on it."""
    return gpu.used_bytes is not None and gpu.used_bytes < LESS_THAN_A_CONTEXT


def rows_of(places: Places) -> dict[Place, GpuUse]:
    """One row for each place, with the sum of its processes."""
    return {
        place: GpuUse(*place, _sum(processes), tuple(processes))
        for place, processes in places.items()
    }


def _sum(processes: Iterable[ProcessReading]) -> Amount:
    whole = add(process.amount for process in processes)
    return whole if whole.floor <= LARGEST_GPU else Amount(None, NOT_AVAILABLE)


def in_order(rows: Mapping[Place, GpuUse]) -> tuple[GpuUse, ...]:
    """All rows by place. A pod without any holds nothing."""
    ordered = tuple(row for _, row in sorted(rows.items()))
    return ordered or (GpuUse(UNNAMED, UNNAMED, Amount(0)),)

"""What the agent of a node says: it sees every process and card, and what kubelet handed out."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from gpumem_operator.reports.astray import with_astray
from gpumem_operator.reports.cards import Card, card_of
from gpumem_operator.reports.measured import GpuContainer, MeasuredPod
from gpumem_operator.reports.pictures import (
    NOTHING_GIVEN,
    Amount,
    Given,
    Picture,
    ProcessReading,
)
from gpumem_operator.reports.reasons import NO_REPORT, NOT_ATTRIBUTED
from gpumem_operator.reports.unnamed import with_possible_owners
from gpumem_operator.reports.uses import (
    LESS_THAN_A_CONTEXT,
    UNNAMED,
    GpuUse,
    Place,
    PodUse,
    by_pod,
    container_of,
    in_order,
    rows_of,
    unlisted,
)

_Holder = tuple[str, str, str]
"""Namespace and name of a pod, and container; a process of no pod that we know is one by itself."""


class AgentView:
    """The pods of one node, through one picture of its agent."""

    def __init__(
        self, pods: Sequence[MeasuredPod], picture: Picture, *, newer: Collection[str] = ()
    ) -> None:
        """`newer` has the uids of pods that were first seen after the picture."""
        self._newer = newer
        self._pods = {pod.uid: pod for pod in pods}
        self._picture = picture
        self._held = by_pod(self._pods, picture.processes)
        self._listed = {gpu.uuid for gpu in picture.gpus}
        self._nobodys = {p.gpu for p in picture.processes if _may_be_anybodys(p)}
        self._broken = unlisted(picture) | dict.fromkeys(self._nobodys, NOT_ATTRIBUTED)
        self._alone = _alone(self._pods, picture)

    def uses(self) -> dict[str, PodUse]:
        """What each pod holds, by its uid."""
        return {uid: self._use(pod) for uid, pod in self._pods.items()}

    def cards(self, node: str, uses: Iterable[PodUse]) -> list[Card]:
        """The whole cards of the node; what is on MIG instances is on their card."""
        card_by_uuid = {gpu.uuid: gpu.parent or gpu.uuid for gpu in self._picture.gpus}
        attributed: defaultdict[str, int] = defaultdict(int)
        for use in uses:
            for row in use.rows:
                attributed[card_by_uuid.get(row.gpu, row.gpu)] += row.measured
        return [
            card_of(node, gpu, attributed[gpu.uuid], self._picture.unknown or gpu.unknown)
            for gpu in self._picture.gpus
            if gpu.parent is None
        ]

    def _use(self, pod: MeasuredPod) -> PodUse:
        rows = {
            place: replace(row, amount=row.amount.partly(NOT_ATTRIBUTED))
            if row.gpu in self._nobodys and row.amount.known
            else row
            for place, row in rows_of(self._held.get(pod.uid, {})).items()
        }
        for container in pod.containers:
            given = self._given(pod, container.name)
            rows |= {
                (container.name, gpu): self._on_given(pod, (container.name, gpu), rows)
                for gpu in given.gpus
            }
            if not (given.whole and given.gpus):
                rows |= self._on_any(pod, container, rows)
        rows = with_possible_owners(
            pod, rows, may_use=lambda name, gpu: _may_be_on(self._given(pod, name), gpu)
        )
        for container in pod.containers:
            # Of a new pod, the kubelet's word may still be about the one before it.
            given = self._given(pod, container.name)
            sure = given.whole and pod.uid not in self._newer
            own = given.gpus if sure else ()
            rows = with_astray(rows, container, self._picture, given=own)
        if (reason := self._picture.unknown) is not None:
            rows = {
                place: replace(row, amount=row.amount.partly(reason)) for place, row in rows.items()
            }
        return PodUse(pod, in_order(rows), "NodeAgent")

    def _given(self, pod: MeasuredPod, container: str) -> Given:
        return self._picture.assignments.get((pod.namespace, pod.name, container), NOTHING_GIVEN)

    def _on_given(self, pod: MeasuredPod, place: Place, rows: Mapping[Place, GpuUse]) -> GpuUse:
        """On a GPU that kubelet handed to the container."""
        name, gpu = place
        row = rows.get(place) or GpuUse(*place, Amount(0))
        alone, used = self._alone.get(gpu, (None, 0))
        if gpu in self._broken:
            return GpuUse(*place, row.amount.partly(self._broken[gpu]), row.processes)
        if gpu not in self._listed:
            # The kubelet gave it, and NVML tells of no such card (any more).
            return GpuUse(*place, row.amount.partly("DeviceLost"), row.processes)
        if pod.uid in self._newer and not row.processes:
            # The kubelet names pods without their UID: this was an earlier one of the same name.
            return GpuUse(*place, Amount(None, NO_REPORT))
        if alone == (pod.namespace, pod.name, name) and (
            row.processes or used >= LESS_THAN_A_CONTEXT
        ):
            # Whatever is on a card that is its alone is its, managed memory included. The card and
            # its processes are read one after the other: what the list has is held as well.
            return GpuUse(*place, Amount(max(used, row.measured)), row.processes)
        return row

    def _on_any(
        self, pod: MeasuredPod, container: GpuContainer, rows: Mapping[Place, GpuUse]
    ) -> dict[Place, GpuUse]:
        """What to add where nothing says which GPUs the container was given."""
        seen = sum(name == container.name for name, _ in rows)
        place = (container.name, UNNAMED)
        if self._broken and seen < container.gpus:
            # It may have one of the cards whose processes can not be listed.
            return {place: GpuUse(*place, Amount(None, min(self._broken.values())))}
        if seen:
            return {}
        # Of a pod that came after the agent looked, no process is not nothing held.
        nothing = Amount(None, NO_REPORT) if pod.uid in self._newer else Amount(0)
        return {place: GpuUse(*place, nothing)}


def _may_be_anybodys(process: ProcessReading) -> bool:
    """Whether it is there and the agent could not read whose it is."""
    return process.pod_uid is None and process.amount.unknown == NOT_ATTRIBUTED


def _may_be_on(given: Given, gpu: str) -> bool:
    return gpu in given.gpus or not (given.whole and given.gpus)


def _alone(pods: Mapping[str, MeasuredPod], picture: Picture) -> dict[str, tuple[_Holder, int]]:
    """GPUs that one container alone holds, with what is used of each beside the reserve."""
    if not all(given.whole for given in picture.assignments.values()):
        return {}  # a container has GPUs that nobody could name, and any may be one of them
    holders: defaultdict[str, set[_Holder]] = defaultdict(set)
    for place, given in picture.assignments.items():
        for gpu in given.gpus:
            holders[gpu].add(place)
    for process in picture.processes:
        holders[process.gpu].add(_holder(pods.get(process.pod_uid or ""), process))
    return {
        gpu.uuid: (next(iter(holders[gpu.uuid])), gpu.used_bytes)
        for gpu in picture.gpus
        if gpu.used_bytes is not None
        # Where the driver does not tell the reserve, it may be counted as used.
        and gpu.reserved_bytes is not None
        and gpu.unknown is None
        and len(holders[gpu.uuid]) == 1
    }


def _holder(pod: MeasuredPod | None, process: ProcessReading) -> _Holder:
    if pod is None:
        return (UNNAMED, f"process {process.pid}", UNNAMED)
    return (pod.namespace, pod.name, container_of(pod, process))

"""What a pod's own sidecar says: of its pod alone, and only where it could have seen."""

from dataclasses import replace
from typing import Final

from gpumem_operator.reports.astray import with_astray
from gpumem_operator.reports.measured import GpuContainer, MeasuredPod
from gpumem_operator.reports.pictures import Amount, Picture
from gpumem_operator.reports.reasons import NOT_ATTRIBUTED, REPORT_TOO_LARGE
from gpumem_operator.reports.unnamed import with_possible_owners
from gpumem_operator.reports.uses import (
    UNNAMED,
    GpuUse,
    PodUse,
    by_pod,
    in_order,
    rows_of,
    unlisted,
)

PROCESSES_NOT_SHARED: Final = "ProcessesNotShared"
"""The sidecar can not see the pod's processes: shareProcessNamespace is not true."""


def sidecar_view(pod: MeasuredPod, picture: Picture) -> PodUse:
    """What the pod holds."""
    rows = rows_of(by_pod({pod.uid: pod}, picture.processes).get(pod.uid, {}))
    if picture.unknown is not None:
        # Processes that nobody listed may hold more: the shims speak of their own alone.
        rows = {
            place: replace(row, amount=row.amount.partly(picture.unknown))
            for place, row in rows.items()
        }
    for container in pod.containers:
        seen = sum(name == container.name for name, _ in rows)
        reason = _why_unseen(pod, container, picture, seen=seen)
        place = (container.name, UNNAMED)
        if reason is not None:
            rows[place] = GpuUse(*place, Amount(None, reason))
        elif not seen:
            rows[place] = GpuUse(*place, Amount(0))
    claimed = any(process.shim for row in rows.values() for process in row.processes)
    rows = with_possible_owners(pod, rows)
    for container in pod.containers:
        rows = with_astray(rows, container, picture)
    return PodUse(pod, in_order(rows), "Shim" if claimed else "Sidecar")


def _why_unseen(
    pod: MeasuredPod, container: GpuContainer, picture: Picture, *, seen: int
) -> str | None:
    """Why a container may hold something that the sidecar did not see; None where it does not."""
    nobodys = {p.amount.unknown for p in picture.processes if p.pod_uid is None}
    if "HostPids" in nobodys:
        return "HostPids"
    if picture.unknown == REPORT_TOO_LARGE:
        return REPORT_TOO_LARGE
    if seen >= container.gpus:
        return None
    if picture.unknown is not None:
        return None if seen else picture.unknown
    if not pod.shares_processes:
        # Of processes in other namespaces NVML lists none: no process is not nothing used.
        return PROCESSES_NOT_SHARED
    if NOT_ATTRIBUTED in nobodys:
        return NOT_ATTRIBUTED
    return min(unlisted(picture).values(), default=None)

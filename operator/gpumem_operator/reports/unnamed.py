"""Processes of a pod that could not be mapped to a container, and the containers they may be in.

The pod's sum is known all the same. A container that may be the owner is not said to hold nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from gpumem_operator.reports.measured import MeasuredPod, bare_id
from gpumem_operator.reports.pictures import Amount, ProcessReading
from gpumem_operator.reports.reasons import NOT_ATTRIBUTED
from gpumem_operator.reports.uses import UNNAMED, GpuUse, Place


def with_possible_owners(
    pod: MeasuredPod,
    rows: Mapping[Place, GpuUse],
    *,
    may_use: Callable[[str, str], bool] = lambda _container, _gpu: True,
) -> dict[Place, GpuUse]:
    """The rows with every container unknown that may hold what has no container's name.

    `may_use` says whether a container may be on a GPU, as far as that is known.
    """
    found = dict(rows)
    named = _named_by_id(pod, rows)
    strangers = [row for row in rows.values() if row.container == UNNAMED and row.processes]
    for row in strangers:
        for container in (one.name for one in pod.containers):
            if may_use(container, row.gpu) and any(
                _may_be_in(container, process, named) for process in row.processes
            ):
                place = (container, row.gpu)
                found[place] = _partly(found.get(place) or GpuUse(*place, Amount(0)))
                nothing = found.get((container, UNNAMED))
                if row.gpu != UNNAMED and nothing is not None and nothing.amount.bytes == 0:
                    del found[container, UNNAMED]
    return found


def _named_by_id(pod: MeasuredPod, rows: Mapping[Place, GpuUse]) -> set[str]:
    """Containers whose processes are known by the id in the pod's status."""
    processes = (process for row in rows.values() for process in row.processes)
    ids = {bare_id(process.container_id or "") for process in processes}
    return {name for one, name in pod.container_ids.items() if one in ids}


def _may_be_in(container: str, process: ProcessReading, named: set[str]) -> bool:
    # Another id than that by which the container's own processes are known: another container.
    return not (process.container_id and container in named)


def _partly(row: GpuUse) -> GpuUse:
    if not row.amount.known:
        return row
    return replace(row, amount=row.amount.partly(NOT_ATTRIBUTED), rest_is_unnamed=True)

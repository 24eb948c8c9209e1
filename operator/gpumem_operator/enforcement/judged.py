"""What of a measured pod is judged, and by which processes orders could be carried out."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from gpumem_operator.enforcement.facts import Hold, Target
from gpumem_operator.reports.pictures import Amount, Picture, ProcessReading, Sender
from gpumem_operator.reports.report import Limit
from gpumem_operator.reports.uses import GpuUse, PodUse

FRESH_SECONDS: Final = 15.0
"""An excess counts for so long after it was reported. Senders repeat it every 500 ms, so this is
long past the time at which something is wrong with them."""
STALE: Final = Amount(None, "Stale")


def may_show_excess(picture: Picture, limits: Iterable[Limit]) -> bool:
    """Whether a container of the sender's pods may hold more than it may.

    A first look at every report, which costs little: it compares what a pod holds with the least
    limit in it, and attribution decides. Who shows nothing here is judged later, with everybody.
    """
    least: dict[str | None, int] = {}
    for limit in limits:
        for key in (limit.pod_uid, None):
            least[key] = min(limit.limit_bytes, least.get(key, limit.limit_bytes))
    if not least:
        return False
    held: defaultdict[str, defaultdict[str | None, int]] = defaultdict(lambda: defaultdict(int))
    for one in picture.processes:
        held[one.gpu][one.pod_uid] += one.amount.floor
    for gpu in picture.gpus:
        if len(held[gpu.uuid]) == 1:
            # A container has what is used of its own card, whether a process shows it or not.
            [uid] = held[gpu.uuid]
            held[gpu.uuid][uid] = max(held[gpu.uuid][uid], gpu.used_bytes or 0)
    return any(
        amount > least.get(uid, least[None])
        for by_pod in held.values()
        for uid, amount in by_pod.items()
    )


def holds_of(use: PodUse, *, age_seconds: float) -> tuple[Hold, ...]:
    """What containers with a limit hold, by GPU. An excess that is not fresh is unknown; what is
    within a limit is told every 30 s only, and stays as it was."""
    limits = {one.name: one.limit_bytes for one in use.pod.containers if one.limit_bytes}
    holds = (
        Hold(row.container, row.gpu, limits[row.container], row.amount, row.astray)
        for row in use.rows
        if row.container in limits
    )
    stale = age_seconds > FRESH_SECONDS
    return tuple(replace(one, used=STALE) if stale and one.is_over else one for one in holds)


def reclaimable(
    rows: Iterable[GpuUse], holds: Iterable[Hold], sender: Sender
) -> tuple[Target, ...]:
    """Processes of containers over their limit whose shim says that an allocator gives back."""
    over = {hold.container for hold in holds if hold.is_over}
    able = (
        (row.container, process)
        for row in rows
        if row.container in over
        for process in row.processes
        if process.claim is not None
        and any(one.reclaim == "Supported" for one in process.claim.frameworks)
    )
    return tuple(dict.fromkeys(_targets(able, sender)))


def killable(use: PodUse, holds: Iterable[Hold]) -> tuple[Target, ...]:
    """Processes of containers over their limit that an agent sees, the largest first."""
    if use.source != "NodeAgent":
        return ()
    over = {(hold.container, hold.gpu) for hold in holds if hold.is_over}
    held = [
        (row.container, process)
        for row in use.rows
        if (row.container, row.gpu) in over
        for process in row.processes
    ]
    held.sort(key=lambda pair: -(pair[1].amount.bytes or 0))
    return tuple(dict.fromkeys(_targets(held, Sender("NodeAgent", use.pod.node))))


def _targets(processes: Iterable[tuple[str, ProcessReading]], sender: Sender) -> Iterator[Target]:
    for container, process in processes:
        # Without its start time nobody could tell it from the next process of the same id.
        if process.start_time is not None:
            yield Target(sender, container, process.pid, process.start_time)

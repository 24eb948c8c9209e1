"""What really holds a container's limit, by evidence alone.

    Hardware > Driver > MPS > Framework > Unknown > None

Each card is judged by what NVML lists on it, a container by its worst card, a pod by its worst
container. On a card that is not its own a container may hold nothing, and nothing holds it to that.
Caps of processes hold a limit only together: where the caps and reserves of all of them
add up to more, one of them being good does not help. What the shim says is the workload's own word:
it is believed as long as the caps fit into the limit and NVML measures no more than they allow.
"""

from collections.abc import Iterator, Mapping

from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.reports.enforcer import DRIVER, HARDWARE, IDLE, Enforcer, weakest
from gpumem_operator.reports.measured import GpuContainer
from gpumem_operator.reports.pictures import ProcessReading
from gpumem_operator.reports.process_hold import ProcessHold, hold_of
from gpumem_operator.reports.reasons import (
    NO_LIMIT,
    NOT_ASKED,
    NOT_ATTRIBUTED,
    OVER_LIMIT,
    SEVERAL_PROCESSES,
)
from gpumem_operator.reports.uses import UNNAMED, GpuUse, PodUse


def enforcers_of(use: PodUse) -> Mapping[str, Enforcer]:
    """By GPU container, and by every other container of the pod that holds GPU memory."""
    asked = {container.name: enforcer_of(container, use) for container in use.pod.containers}
    others: dict[str, list[Enforcer]] = {}
    for row in use.rows:
        if row.container not in asked and (enforcer := _unasked(row)) is not None:
            others.setdefault(row.container, []).append(enforcer)
    return asked | {name: weakest(found) for name, found in others.items()}


def enforcer_of(container: GpuContainer, use: PodUse) -> Enforcer:
    """Who holds the limit of one GPU container."""
    rows = [row for row in use.rows if row.container == container.name]
    if (stray := next((row for row in rows if row.astray), None)) is not None:
        held = show_bytes(stray.amount.floor)
        detail = f"{_pids(stray)}: {held} held on {stray.gpu}: {stray.astray}"
        return Enforcer("None", OVER_LIMIT, detail)
    if _held_by_hardware(container):
        return HARDWARE
    limit = container.limit_bytes
    if limit is None:
        unread = next((row.amount.unknown for row in rows if row.amount.unknown), None)
        return Enforcer("Unknown", unread) if unread else Enforcer("None", NO_LIMIT)
    # Only the agent can read limits back; a sidecar that says so is not a sidecar of ours.
    by_agent = use.source == "NodeAgent"
    return weakest(
        _on_gpu(limit, row, by_agent=by_agent) for row in rows if row.processes or _tells(row)
    )


def _tells(row: GpuUse) -> bool:
    """Whether a row without processes says anything: of a card that nobody uses, none does."""
    return row.amount.bytes != 0


def _on_gpu(limit: int, row: GpuUse, *, by_agent: bool) -> Enforcer:
    if (held := row.amount.floor) > limit:
        who = f"{_pids(row)}: " if row.processes else ""
        detail = f"{who}{show_bytes(held)} held, limit {show_bytes(limit)}"
        return Enforcer("None", OVER_LIMIT, detail)
    if by_agent and row.processes and all(_driver_holds(limit, one) for one in row.processes):
        return DRIVER
    if not row.processes and row.amount.known:
        return IDLE
    holds = [hold_of(process) for process in row.processes]
    together = _together(limit, holds)
    unread = [] if row.amount.unknown is None else [Enforcer("Unknown", row.amount.unknown)]
    return weakest([*(hold.enforcer for hold in holds), *together, *unread])


def _driver_holds(limit: int, process: ProcessReading) -> bool:
    return process.driver_limit_bytes is not None and process.driver_limit_bytes <= limit


def _together(limit: int, holds: list[ProcessHold]) -> Iterator[Enforcer]:
    """What speaks against bounds that are good each by itself. Those not known are told already."""
    bound = sum(hold.bound_bytes or 0 for hold in holds)
    if bound <= limit:
        return
    detail = f"caps and reserves allow {show_bytes(bound)}, limit {show_bytes(limit)}"
    if len(holds) == 1:
        yield Enforcer("None", OVER_LIMIT, f"process {holds[0].process.pid}: {detail}")
    else:
        yield Enforcer("None", SEVERAL_PROCESSES, f"{len(holds)} processes: {detail}")


def _unasked(row: GpuUse) -> Enforcer | None:
    """Of a container that asked for no GPU, or could not be named."""
    if row.container == UNNAMED:
        return Enforcer("Unknown", NOT_ATTRIBUTED, _pids(row)) if row.processes else None
    if row.amount.unknown is not None:
        return Enforcer("Unknown", row.amount.unknown)
    return Enforcer("None", NOT_ASKED, _pids(row)) if row.processes else None


def _pids(row: GpuUse) -> str:
    """The first few: a pod may have thousands."""
    shown = ", ".join(str(process.pid) for process in row.processes[:5])
    more = len(row.processes) - 5
    return f"process {shown} and {more} more" if more > 0 else f"process {shown}"


def _held_by_hardware(container: GpuContainer) -> bool:
    if container.profile_bytes is not None:
        return container.limit_bytes is None or container.limit_bytes >= container.profile_bytes
    return container.exclusive and container.limit_bytes is None

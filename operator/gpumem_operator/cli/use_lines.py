"""What a pod holds and what bounds it, from the leader's row: lines of `why`. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpumem_operator.api.count import count
from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.cli import others
from gpumem_operator.cli.cells import floor
from gpumem_operator.ledger.charge import has_finished
from gpumem_operator.reports.reasons import cause, explain

Row = Mapping[str, Any]

_WHOSE_PID: Final = {
    "NodeAgent": " (its id on the node)",
    "Sidecar": " (its id in the pod)",
    "Shim": " (its id in the pod)",
}
"""The same process has two numbers; which one is told depends on who measures."""


def use_lines(pod: Row, usage: Row | None, seen: tuple[Row, ...] = ()) -> Iterator[str]:
    """`usage` is None where the leader was not asked, and empty where it knows no such pod; `seen`
    is what agents see of a pod that has ended."""
    if has_finished(pod):
        if not seen:
            yield "  used: nothing any more, it has ended"
            return
        yield "  used: it has ended, and processes of it are still there"
        yield from others.lines(pod, seen)
        return
    if usage is None:
        yield "  used: not known, the leader was not asked"
        return
    if not usage:
        yield "  used: not known, the leader has not seen the pod yet"
        return
    yield from _total(usage)
    for container in usage.get("containers") or ():
        yield from _container(container, usage)
    for row in usage.get("elsewhere") or ():
        name = row["container"] or "a container that could not be named"
        yield f"  used by {name}: {_amount(row, usage)}"


def _total(usage: Row) -> Iterator[str]:
    """The sum, where it is one."""
    containers = usage.get("containers") or ()
    rows = sum(len(one["perGpu"]) for one in containers) + len(usage.get("elsewhere") or ())
    if rows > 1:
        yield f"  used in all: {_amount(usage, usage)}"


def _container(container: Row, usage: Row) -> Iterator[str]:
    for row in container["perGpu"]:
        where = f" on {row['gpu']}" if row["gpu"] else ""
        yield f"  used by {container['name']}{where}: {_amount(row, usage)}"
        yield from _processes(row, _WHOSE_PID.get(str(usage.get("source")), ""))
    kind, reason = container["enforcedBy"], container["enforcedReason"]
    why = f": {cause(reason)}" if reason else ""
    detail = f" [{found}]" if (found := container.get("enforcedDetail")) else ""
    yield f"  limit of {container['name']} held by {kind}{why}{detail}"


def _processes(row: Row, whose_pid: str) -> Iterator[str]:
    """What bounds each process, with the evidence."""
    for one in row.get("processes") or ():
        bound = one["boundBy"] + (f" ({one['boundReason']})" if one["boundReason"] else "")
        facts = [f"holds {_held(one)}", f"bound by {bound}"]
        for key, word in (("capBytes", "cap"), ("reserveBytes", "reserve")):
            if one[key] is not None:
                facts.append(f"{word} {show_bytes(one[key])}")
        if one["driverLimitBytes"] is not None:
            facts.append(f"driver's limit {show_bytes(one['driverLimitBytes'])} for all of them")
        if one["frameworks"]:
            facts.append(f"with {', '.join(one['frameworks'])}")
        # An older leader does not tell them.
        facts += map(_server, one.get("servers") or ())
        yield f"    process {one['pid']}{whose_pid}: {', '.join(facts)}"
    if left := row.get("processesLeftOut"):
        yield f"    and {count(left, 'more process')}"


def _held(process: Row) -> str:
    if process["usedBytes"] is None:
        return f"an unknown amount ({process['unknown']})"
    return show_bytes(process["usedBytes"])


def _server(server: Row) -> str:
    """What an inference server takes of the card, by its own word."""
    instead = "" if server["applied"] == server["asked"] else f" in the place of {server['asked']}"
    but = f", which does not bound it: {explain(reason)}" if (reason := server["reason"]) else ""
    return f"{server['name']} takes {server['argument']} {server['applied']}{instead}{but}"


def _amount(row: Row, usage: Row) -> str:
    if row["usedBytes"] is None:
        least = f"{floor(row)} (said by {usage.get('source')})" if floor(row) else ""
        return f"unknown{least}, {cause(str(row['unknown']))}"
    if usage.get("started") is False and not row["usedBytes"]:
        return "0 (not started: none of its containers has run yet)"
    return f"{show_bytes(row['usedBytes'])} (said by {usage.get('source')})"

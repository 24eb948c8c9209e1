"""Giving cached memory back when it is asked for.

The sidecar or agent puts `<pid>-<start time>.order` beside the state file: JSON with
`schemaVersion`, `id` and `action: Reclaim`. The answer is `reclaimed` in the state file, under the
same id; who gave the order removes it.
"""

from __future__ import annotations

import gc
import json
import os
import stat

from gpumem_shim import state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gpumem_shim.process import Process

LARGEST_ORDER = 4096
LONGEST_ID = 253


def answer(process: Process) -> None:
    """Do what the order beside the state file says, once."""
    order = _order()
    if order is None or (process.told.reclaimed and process.told.reclaimed.id == order):
        return
    result, given_back = _reclaim(process)
    with state.lock():
        process.told.reclaimed = state.Reclaimed(order, result, given_back)
        state.write(process.told)


def _reclaim(process: Process) -> tuple[str, int | None]:
    """The result as the report has it, and the bytes that allocators hold less than before."""
    able = [one for one in process.adapters.values() if one.can_reclaim and list(one.in_use())]
    if not able:
        return "Unsupported", None
    if any(adapter.busy() for adapter in able):
        return "Busy", None
    before = _held(process)
    # What only a cycle of references keeps is cached by nobody's wish. No lock of ours is held:
    # the program's own code runs here.
    gc.collect()
    try:
        done = [adapter.reclaim() for adapter in able]
    except Exception:
        return "Failed", None
    return ("Done", max(0, before - _held(process))) if all(done) else ("Busy", None)


def _held(process: Process) -> int:
    return sum(
        process.adapters[name].held(ordinal) or 0
        for ordinal, names in process.using.items()
        for name in names
    )


def _order() -> str | None:
    """The id of the order; None where there is none, or something else in its place."""
    place = state.own_file()
    if place is None:
        return None
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        file = os.open(os.path.join(place[0], f"{place[1]}.order"), flags)
    except OSError:
        return None
    try:
        is_file = stat.S_ISREG(os.fstat(file).st_mode)
        content = os.read(file, LARGEST_ORDER) if is_file else b""
    finally:
        os.close(file)
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError):
        return None
    is_order = isinstance(raw, dict) and raw.get("action") == "Reclaim"
    order = raw.get("id") if is_order and raw.get("schemaVersion") == 1 else None
    return order if isinstance(order, str) and len(order) <= LONGEST_ID else None

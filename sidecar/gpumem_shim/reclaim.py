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
from gpumem_shim.process import held_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gpumem_shim.frameworks import Adapter
    from gpumem_shim.process import Process

LARGEST_ORDER = 4096
LONGEST_ID = 253


def answer(process: Process) -> None:
    """Do what the order beside the state file says, once."""
    order = _order()
    if order is None or (process.told.reclaimed and process.told.reclaimed.id == order):
        return
    try:
        result, given_back = _reclaim(process)
    except Exception:
        # Whoever gave the order waits for an answer before the next step is taken.
        result, given_back = "Failed", None
    with state.lock():
        process.told.reclaimed = state.Reclaimed(order, result, given_back)
        state.write(process.told)


def _reclaim(process: Process) -> tuple[str, int | None]:
    """The result as the report has it, and the bytes that allocators hold less than before."""
    able = [one for one in process.adapters.values() if one.can_reclaim and _is_in_use(one)]
    if not able:
        return "Unsupported", None
    if any(_is_busy(adapter) for adapter in able):
        return "Busy", None
    before = _held(process, able)
    # What only a cycle of references keeps is cached by nobody's wish. No lock of ours is held:
    # the program's own code runs here.
    gc.collect()
    done = [adapter.reclaim() for adapter in able]
    if not all(done):
        return "Busy", None
    after = _held(process, able)
    return "Done", None if before is None or after is None else max(0, before - after)


def _is_in_use(adapter: Adapter) -> bool:
    try:
        return bool(list(adapter.in_use()))
    except Exception:
        return False  # not as we know it, so nothing in it is called


def _is_busy(adapter: Adapter) -> bool:
    try:
        return adapter.busy()
    except Exception:
        return True  # where that can not be told, nothing may be freed


def _held(process: Process, adapters: list[Adapter]) -> int | None:
    """Bytes in the allocators of these; None where one does not tell."""
    held = [
        held_in(adapter, ordinal)
        for adapter in adapters
        for ordinal, names in process.using.items()
        if adapter.name in names
    ]
    return None if None in held else sum(one or 0 for one in held)


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

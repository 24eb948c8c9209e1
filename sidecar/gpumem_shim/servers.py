"""Inference servers that take a share of the card: it is lowered to what their process may hold.

    vLLM   the process that uses the GPU multiplies `gpu_memory_utilization` by CUDA's total, in
           `Worker.init_device` or behind it, and fills what that leaves with its cache

The share is lowered there and not where arguments are read: that process alone starts CUDA, and
however vLLM was started (`vllm serve`, its module, the library), the configuration arrives there.
Sources: vllm/v1/worker/gpu_worker.py of 0.8.5, 0.12.0 and 0.33.0, vllm/worker/worker.py of 0.8.5.
"""

from __future__ import annotations

import functools
import sys

from gpumem_shim import state
from gpumem_shim.faults import kept
from gpumem_shim.limits import fraction_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from gpumem_shim.process import Process

ARGUMENT = "gpu_memory_utilization"
NO_TOTAL = "NoTotal"
"""A visible card does not say how much memory it has, or there is none."""
CACHE_SIZE_GIVEN = "CacheSizeGiven"
"""The program gave the size of its cache in bytes, which goes before the share."""
PARTS = 10_000
"""A share is a whole number of such parts: people read it, and type it."""


def imported(module: ModuleType, process: Process) -> None:
    """Stand before vLLM's start of a GPU. Raises what comes of a release that we do not know."""
    if process.lowers_servers:
        worker: Any = module.Worker
        worker.init_device = _lowering(worker.init_device, process)


def _lowering(original: Callable[..., Any], process: Process) -> Callable[..., Any]:
    @functools.wraps(original)
    def init_device(self: Any, *args: Any, **kwargs: Any) -> Any:
        # What fails here is another release than we know: the allocator's cap holds all the same.
        with kept:
            lower(self.cache_config, process)
        return original(self, *args, **kwargs)

    return init_device


def lower(config: Any, process: Process) -> None:
    """Lower the share in vLLM's configuration of its cache, and tell. CUDA's driver is started."""
    asked = getattr(config, ARGUMENT)
    allowed, reason = _allowed(process)
    applied = asked if allowed is None else lower_of(asked, allowed)
    if applied is not asked:
        setattr(config, ARGUMENT, applied)
    if reason is None and getattr(config, "kv_cache_memory_bytes", None):
        reason = CACHE_SIZE_GIVEN
    version = getattr(sys.modules.get("vllm"), "__version__", None)
    with state.lock():
        process.told.servers["vllm"] = state.Server(
            version=None if version is None else str(version)[: state.LONGEST_VERSION],
            argument=ARGUMENT,
            asked=str(asked)[: state.LONGEST_VALUE],
            applied=str(applied)[: state.LONGEST_VALUE],
            reason=reason,
        )
        state.write(process.told)


def _allowed(process: Process) -> tuple[float | None, str | None]:
    """The share that is within the limit on every visible card; or why there is none."""
    pool = process.limits.pool_bytes
    if pool is None:
        return None, process.limits.obstacle
    cards = [process.card(ordinal) for ordinal in range(process.start_driver())]
    totals = [card.total_bytes for card in cards if card is not None]
    if not totals or len(totals) < len(cards):
        return None, NO_TOTAL
    share = fraction_of(pool, max(totals))
    # Nothing is left of a tiny one; vLLM takes no share of 0.
    return int(share * PARTS) / PARTS or share, None


def lower_of(asked: Any, allowed: float) -> Any:
    """The program's own where it is lower, as it wrote it; what can not be compared is above."""
    try:
        return asked if float(asked) <= allowed else allowed
    except (TypeError, ValueError, OverflowError):
        return allowed

"""What bounds one process on one GPU: the MPS server, the caps that its shim set, or nothing.

Both bounds are per process. Whether they add up to the container's limit is not decided here.
"""

from dataclasses import dataclass
from typing import Final

from gpumem_operator.api.quantity import add_bytes, show_bytes
from gpumem_operator.reports.enforcer import FRAMEWORK, MPS, Enforcer
from gpumem_operator.reports.pictures import ProcessReading
from gpumem_operator.reports.reasons import (
    NO_FRAMEWORK,
    NO_SHIM,
    NOT_CAPPED,
    ONLY_CLAIMED,
    OVER_LIMIT,
    REPORT_TOO_LARGE,
)
from gpumem_operator.reports.report import Framework, Shim

HOLDS_NOTHING: Final = frozenset({"NotStarted", "NoGPUSupport"})
"""What the shim says of a framework that has not touched a GPU yet, or is a build that can not."""


@dataclass(frozen=True, slots=True)
class ProcessHold:
    """One process, and what is known to bound it; amounts are bytes, None is not known."""

    process: ProcessReading
    enforcer: Enforcer
    """MPS, Framework, None or Unknown."""
    cap_bytes: int | None = None
    """What allocators may hold, summed over frameworks; or the limit of the MPS client."""
    reserve_bytes: int | None = None
    """What is kept, or held already, beside the allocators; 0 under MPS, which counts all."""

    @property
    def bound_bytes(self) -> int | None:
        """The most that the process can hold while its bound works."""
        if self.cap_bytes is None or self.reserve_bytes is None:
            return None
        return add_bytes((self.cap_bytes, self.reserve_bytes))


def hold_of(process: ProcessReading) -> ProcessHold:
    """From the process's own reading and claim alone."""
    if process.shim:
        return ProcessHold(process, Enforcer("Unknown", ONLY_CLAIMED, _named(process)))
    if process.amount.unknown is not None:
        return ProcessHold(process, Enforcer("Unknown", process.amount.unknown, _named(process)))
    if process.mps and process.mps_limit_bytes is not None:
        return _checked(ProcessHold(process, MPS, process.mps_limit_bytes, 0))
    if process.claim_left_out:
        return ProcessHold(process, Enforcer("Unknown", REPORT_TOO_LARGE, _named(process)))
    if process.claim is None or process.start_time is None:
        return ProcessHold(process, Enforcer("None", NO_SHIM, _named(process)))
    return _by_framework(process, process.claim)


def _by_framework(process: ProcessReading, claim: Shim) -> ProcessHold:
    caps = {one.name: _cap(one, process.gpu) for one in claim.frameworks}
    working = [one for one in claim.frameworks if not _idle(one, caps[one.name])]
    if not working:
        # Something else in the process has touched the GPU, or the shim is a moment behind.
        return ProcessHold(process, Enforcer("None", NO_FRAMEWORK, _named(process)))
    free = next((one for one in working if caps[one.name] is None), None)
    if free is not None:
        why = f"{free.name} {free.not_capped or 'has no cap on this GPU'}"
        return ProcessHold(process, Enforcer("None", NOT_CAPPED, f"{_named(process)}: {why}"))
    if claim.context_reserve_bytes is None:
        detail = f"{_named(process)}: its shim told no reserve"
        return ProcessHold(process, Enforcer("None", NOT_CAPPED, detail))
    outside = max((one.bytes for one in claim.outside if one.gpu == process.gpu), default=0)
    reserve = max(claim.context_reserve_bytes, outside)
    capped = add_bytes(cap for one in working if (cap := caps[one.name]) is not None)
    return _checked(ProcessHold(process, FRAMEWORK, capped, reserve))


def _cap(framework: Framework, gpu: str) -> int | None:
    """The larger one of two that are told, because a claim is not trusted."""
    return max((cap.cap_bytes for cap in framework.caps if cap.gpu == gpu), default=None)


def _idle(framework: Framework, cap: int | None) -> bool:
    return cap is None and framework.not_capped in HOLDS_NOTHING


def _checked(hold: ProcessHold) -> ProcessHold:
    """A bound that the process exceeds is none, whatever anybody claims."""
    held, bound = hold.process.amount.bytes, hold.bound_bytes
    if held is None or bound is None or held <= bound:
        return hold
    detail = (
        f"{_named(hold.process)} holds {show_bytes(held)}, and its {hold.enforcer.kind} caps and"
        f" reserve are {show_bytes(bound)}"
    )
    return ProcessHold(
        hold.process, Enforcer("None", OVER_LIMIT, detail), hold.cap_bytes, hold.reserve_bytes
    )


def _named(process: ProcessReading) -> str:
    return f"process {process.pid}"

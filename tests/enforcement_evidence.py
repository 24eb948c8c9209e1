"""Processes as NVML, the agent and the shim tell of them, with only what a test is about.

use(process(6))                       one process of container `main` that holds 6 GiB, with a shim
use(process(6, shim=None))            the same without a shim
use(process(3, cap=3), process(3, cap=3, pid=2))
"""

from __future__ import annotations

from typing import Any

from gpumem_operator.reports.enforcement import enforcers_of
from gpumem_operator.reports.enforcer import Enforcer, weakest
from gpumem_operator.reports.measured import GpuContainer
from gpumem_operator.reports.pictures import Amount, ProcessReading
from gpumem_operator.reports.report import Cap, Framework, Outside, Shim
from gpumem_operator.reports.uses import GpuUse, PodUse, Source, add
from report_builders import GIB, GPU, container, measured


def framework(
    cap: float | None = 7, *, name: str = "torch", gpu: str = GPU, not_capped: str | None = None
) -> Framework:
    """One that has a cap of so many GiB, or none with the reason."""
    caps = [] if cap is None else [Cap(gpu=gpu, capBytes=int(cap * GIB))]
    return Framework.model_validate(
        {"name": name, "caps": [one.model_dump(by_alias=True) for one in caps]}
        | {"notCapped": not_capped, "capHits": None}
    )


def shim(*frameworks: Framework, reserve: float | None = 1, outside: float = 0) -> Shim:
    """What a process claims; by default a torch with a cap of 7 GiB, and 1 GiB beside it."""
    found = Shim(frameworks=list(frameworks or [framework()]))
    beside = [Outside(gpu=GPU, bytes=int(outside * GIB))] if outside else []
    kept = None if reserve is None else int(reserve * GIB)
    return found.model_copy(update={"context_reserve_bytes": kept, "outside": beside})


WITH_SHIM = shim()


def process(
    held: float | str = 6,
    *,
    pid: int = 1,
    gpu: str = GPU,
    claim: Shim | None = WITH_SHIM,
    only_claimed: bool = False,
    mps: float | None = None,
    mps_client: bool | None = None,
    driver: float | None = None,
    start_time: int | None = 5,
) -> ProcessReading:
    """Amounts are GiB; `held` may be the reason why it is not known."""
    amount = Amount(None, held) if isinstance(held, str) else Amount(int(held * GIB))
    return ProcessReading(
        pid=pid,
        gpu=gpu,
        pod_uid="pod-1",
        container="main",
        container_id=None,
        amount=amount,
        shim=only_claimed,
        start_time=start_time,
        mps=mps is not None if mps_client is None else mps_client,
        claim=claim,
        mps_limit_bytes=None if mps is None else int(mps * GIB),
        driver_limit_bytes=None if driver is None else int(driver * GIB),
    )


def row(
    *processes: ProcessReading, name: str = "main", gpu: str = GPU, held: Amount | None = None
) -> GpuUse:
    """What a container holds on one GPU; `held` where it is not the sum of its processes."""
    return GpuUse(name, gpu, held or add(one.amount for one in processes), processes)


def use(
    *rows: GpuUse | ProcessReading,
    containers: tuple[GpuContainer, ...] = (),
    source: Source | None = "NodeAgent",
) -> PodUse:
    """A pod; processes that stand alone are one row of container `main`, which has 8 GiB."""
    processes = tuple(one for one in rows if isinstance(one, ProcessReading))
    every = [one for one in rows if isinstance(one, GpuUse)]
    if processes:
        every.insert(0, row(*processes))
    return PodUse(measured("pod-1", *(containers or (container(),))), tuple(every), source)


def enforcer(*rows: GpuUse | ProcessReading, **fields: Any) -> Enforcer:
    """Of the whole pod."""
    return weakest(enforcers_of(use(*rows, **fields)).values())

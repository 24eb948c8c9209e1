"""The report as JSON, and when a new one is worth sending. Pure.

The operator's own description of the same format is elsewhere; one golden file is tested against
both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from gpumem_sidecar.attribution import Sender
from gpumem_sidecar.picture import Assignment, Framework, Gpu, Picture, Process, Server, Shim

SCHEMA_VERSION = 1
MOST_GPUS = 256
MOST_PROCESSES = 4096
MOST_ASSIGNMENTS = 1024
SIGNIFICANT_PARTS = 100
"""A change of more than one part in so many is sent at once."""


class Acknowledgement(NamedTuple):
    """What became of an order."""

    id: str
    result: str
    bytes: int | None = None


class Header(NamedTuple):
    """Who sends which message."""

    sender: Sender
    sender_start: str
    sequence: int
    age_milliseconds: int
    """Since the picture was taken. A duration, because clocks of two machines may differ."""


class Room(NamedTuple):
    """How much of a picture goes into one report."""

    claims: bool = True
    """Whether what shims say is in it."""
    processes: int = MOST_PROCESSES


WHOLE = Room()


def full(
    header: Header,
    picture: Picture,
    acknowledgements: Sequence[Acknowledgement] = (),
    *,
    room: Room = WHOLE,
) -> dict[str, Any]:
    """The whole picture. What there is no room for is left out, and that is said."""
    processes = sorted(picture.processes, key=_largest_first)[: min(room.processes, MOST_PROCESSES)]
    cut = len(picture.gpus) > MOST_GPUS
    return _message(header, "Full", acknowledgements) | {
        "driverVersion": picture.driver_version,
        "unknown": "NotAvailable" if cut and picture.unknown is None else picture.unknown,
        "driverLimits": picture.driver_limits,
        "gpus": [_gpu(gpu) for gpu in picture.gpus[:MOST_GPUS]],
        "processes": [_process(process, claims=room.claims) for process in processes],
        "processesLeftOut": len(picture.processes) - len(processes),
        "assignments": _assignments(picture),
    }


def less(room: Room, picture: Picture) -> Room | None:
    """The next smaller room: without claims, then for half of the processes and half again; None
    where nothing is left that could be left out."""
    if room.claims and any(process.shim for process in picture.processes):
        return Room(claims=False)
    half = min(room.processes, len(picture.processes)) // 2
    return Room(claims=False, processes=half) if picture.processes and room.processes else None


def unchanged(
    header: Header, picture: Picture, acknowledgements: Sequence[Acknowledgement] = ()
) -> dict[str, Any]:
    """Says that the last picture still holds."""
    return _message(header, "Unchanged", acknowledgements) | {
        "driverVersion": picture.driver_version,
        "unknown": picture.unknown,
    }


def encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def differs(before: Picture, now: Picture) -> bool:
    """Whether an amount changed by more than 1 %, or anything else at all."""
    if _without_amounts(before) != _without_amounts(now):
        return True
    pairs = zip(_amounts(before), _amounts(now), strict=True)
    return any(abs(new - old) * SIGNIFICANT_PARTS > old for old, new in pairs)


def _without_amounts(picture: Picture) -> Picture:
    """Amounts become 0, unknown ones stay None. What of a claim moves by itself is left out: it
    travels with the next report."""
    return picture._replace(
        gpus=tuple(
            gpu._replace(used_bytes=None if gpu.used_bytes is None else 0) for gpu in picture.gpus
        ),
        processes=tuple(
            process._replace(
                bytes=None if process.bytes is None else 0,
                shim=process.shim and _without_counts(process.shim),
            )
            for process in picture.processes
        ),
    )


def _without_counts(shim: Shim) -> Shim:
    frameworks = (one._replace(cap_hits=None) for one in shim.frameworks)
    return shim._replace(frameworks=tuple(frameworks), outside=())


def _amounts(picture: Picture) -> list[int]:
    used = [gpu.used_bytes for gpu in picture.gpus]
    held = [process.bytes for process in picture.processes]
    return [amount for amount in (*used, *held) if amount is not None]


def _largest_first(process: Process) -> tuple[int, int]:
    """Unknown ones first: that something is unknown must not be lost."""
    return (0, 0) if process.bytes is None else (1, -process.bytes)


def _message(
    header: Header, kind: str, acknowledgements: Sequence[Acknowledgement]
) -> dict[str, Any]:
    return {
        "schemaVersion": SCHEMA_VERSION,
        "sender": header.sender,
        "senderStart": header.sender_start,
        "sequence": header.sequence,
        "ageMilliseconds": header.age_milliseconds,
        "kind": kind,
        "acknowledgements": [one._asdict() for one in acknowledgements],
    }


def _gpu(gpu: Gpu) -> dict[str, Any]:
    return {
        "uuid": gpu.uuid,
        "index": gpu.number,
        "model": gpu.model,
        "parent": gpu.parent,
        "totalBytes": gpu.total_bytes,
        "reservedBytes": gpu.reserved_bytes,
        "usedBytes": gpu.used_bytes,
        "unknown": gpu.unknown,
    }


def _process(process: Process, *, claims: bool) -> dict[str, Any]:
    return {
        "pid": process.pid,
        "startTime": process.start_time,
        "gpu": process.gpu,
        "podUid": process.pod_uid,
        "container": process.container,
        "containerId": process.container_id,
        "bytes": process.bytes,
        "unknown": process.unknown,
        "source": process.source,
        "mps": process.mps,
        "mpsLimitBytes": process.mps_limit_bytes,
        "driverLimitBytes": process.driver_limit_bytes,
        "shim": _shim(process.shim) if process.shim and claims else None,
        "shimLeftOut": process.shim is not None and not claims,
    }


def _shim(shim: Shim) -> dict[str, Any]:
    return {
        "frameworks": [_framework(one) for one in shim.frameworks],
        "limitBytes": shim.limit_bytes,
        "contextReserveBytes": shim.context_reserve_bytes,
        "processesPerGpu": shim.processes_per_gpu,
        "outside": [{"gpu": gpu, "bytes": amount} for gpu, amount in shim.outside],
        "servers": [_server(one) for one in shim.servers],
    }


def _framework(framework: Framework) -> dict[str, Any]:
    return {
        "name": framework.name,
        "version": framework.version,
        "caps": [{"gpu": cap.gpu, "capBytes": cap.cap_bytes} for cap in framework.caps],
        "notCapped": framework.not_capped,
        "capHits": framework.cap_hits,
        "reclaim": framework.reclaim,
    }


def _server(server: Server) -> dict[str, Any]:
    return {
        "name": server.name,
        "version": server.version,
        "argument": server.argument,
        "asked": server.asked,
        "applied": server.applied,
        "reason": server.reason,
    }


def _assignments(picture: Picture) -> list[dict[str, Any]]:
    # All or none: with a part of them a shared GPU would pass for one container's alone.
    whole = len(picture.assignments) <= MOST_ASSIGNMENTS
    return [_assignment(one) for one in picture.assignments] if whole else []


def _assignment(assignment: Assignment) -> dict[str, Any]:
    return {
        "podNamespace": assignment.pod_namespace,
        "podName": assignment.pod_name,
        "container": assignment.container,
        "gpus": list(assignment.gpus),
        "unnamed": assignment.unnamed,
    }

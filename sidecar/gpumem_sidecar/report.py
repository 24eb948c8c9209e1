"""The report as JSON, and when a new one is worth sending. Pure.

The operator's own description of the same format is elsewhere; one golden file is tested against
both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from gpumem_sidecar.attribution import Sender
from gpumem_sidecar.claims_that_fit import claims_that_fit
from gpumem_sidecar.picture import Assignment, Framework, Gpu, Picture, Process, Server, Shim

SCHEMA_VERSION = 1
MOST_GPUS = 256
MOST_PROCESSES = 4096
MOST_ASSIGNMENTS = 1024
MOST_BYTES: dict[Sender, int] = {"Sidecar": 256 * 2**10, "NodeAgent": 4 * 2**20}
"""That a leader takes in one report."""
BYTES_OF_OBJECT = 64
"""A leader takes one object for so many of these bytes, and counts every opening brace as one."""
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
    """The whole picture. What there is no room for is left out, and that is said: of claims, those
    of the pods that claim most."""
    processes = sorted(picture.processes, key=_largest_first)[: min(room.processes, MOST_PROCESSES)]
    cut = len(picture.gpus) > MOST_GPUS
    message = _message(header, "Full", acknowledgements) | {
        "driverVersion": picture.driver_version,
        "unknown": "NotAvailable" if cut and picture.unknown is None else picture.unknown,
        "driverLimits": picture.driver_limits,
        "gpus": [_gpu(gpu) for gpu in picture.gpus[:MOST_GPUS]],
        "processes": [_process(process) for process in processes],
        "processesLeftOut": len(picture.processes) - len(processes),
        "assignments": _assignments(picture),
    }
    if room.claims and any(process.shim for process in processes):
        _add_claims(message, processes)
    return message


def _add_claims(message: dict[str, Any], processes: Sequence[Process]) -> None:
    """Those that fit, in place of the word that they were left out."""
    claims = [process.shim and _shim(process.shim) for process in processes]
    together = list(zip(message["processes"], claims, strict=True))
    weights = ((entry["podUid"], weight(claim)) for entry, claim in together if claim)
    room = MOST_BYTES[message["sender"]] - weight(message)
    fitting = claims_that_fit(weights, room)
    for entry, claim in together:
        if claim and entry["podUid"] in fitting:
            entry |= {"shim": claim, "shimLeftOut": False}


def weight(part: dict[str, Any]) -> int:
    """Bytes that it takes of what a leader takes."""
    content = encode(part)
    return max(len(content), BYTES_OF_OBJECT * content.count(b"{"))


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
    """As it is sent. What is the same for nearly all of thousands of processes is not said."""
    if "processes" in message:
        message = message | {"processes": [_short(process) for process in message["processes"]]}
    # Letters as they are: escaped, each may take three times the bytes that it has in a file.
    text = json.dumps(message, separators=(",", ":"), ensure_ascii=False)
    return text.encode(errors="replace")


def _short(process: dict[str, Any]) -> dict[str, Any]:
    """Without what a reader of the format takes for said where it is not there."""
    silent = {"source": "NVML", "mps": False, "shimLeftOut": False}
    return {name: value for name, value in process.items() if value != silent.get(name)}


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
    unknown = process.unknown is not None or process.bytes is None
    return (0, 0) if unknown else (1, -(process.bytes or 0))


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


def _process(process: Process) -> dict[str, Any]:
    """Without what its shim claims, and marked so."""
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
        "shim": None,
        "shimLeftOut": process.shim is not None or process.shim_left_out,
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

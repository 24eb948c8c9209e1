"""What a shim wrote about its process, read with distrust. Pure.

Anybody in the pod can write such a file. It can only misreport its own pod: everything is checked
for form and length here, so that a report with it in is never refused as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from gpumem_sidecar.picture import Cap, Framework, Server, Shim

SCHEMA_VERSION = 1
LONGEST_TEXT = 253
MOST_ENTRIES = 16
MOST_SERVERS = 4
LONGEST_VALUE = 32
MOST_GPUS = 256
LARGEST = 2**63 - 1
LONGEST_ID = 253
_UUID = re.compile(r"[A-Za-z0-9._:/-]{1,96}")
_WORD = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")


class Key(NamedTuple):
    """One process of one pod, for ever."""

    pod_uid: str
    pid: int
    """In its own PID namespace."""
    start_time: int


class Reclaimed(NamedTuple):
    """What became of the last order to give cached memory back."""

    id: str
    result: str
    bytes: int | None = None


class State(NamedTuple):
    """One file; `measured` has GPU or MIG UUIDs and the bytes that the process saw there."""

    pid: int
    start_time: int
    container: str
    shim: Shim
    measured: tuple[tuple[str, int], ...] = ()
    reclaimed: Reclaimed | None = None


def parse(content: bytes) -> State:
    """Raises ValueError where it is no state of this version."""
    try:
        raw = json.loads(content)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(raw, dict) or raw.get("schemaVersion") != SCHEMA_VERSION:
        raise ValueError(f"not a state of version {SCHEMA_VERSION}")
    pid, start_time = _number(raw.get("pid")), _number(raw.get("startTime"))
    container = raw.get("container")
    if not pid or start_time is None or not isinstance(container, str):
        raise ValueError("pid, startTime and container are needed")
    shim = Shim(
        tuple(_frameworks(raw.get("frameworks"))),
        _number(raw.get("limitBytes")),
        _number(raw.get("contextReserveBytes")),
        _number(raw.get("processesPerGpu")),
        tuple(_on_gpus(raw.get("gpus"), "uuid", "outsideBytes")),
        tuple(_servers(raw.get("servers"))),
    )
    # A process that has nothing on a card does not list it: 0 is not a measurement.
    held = tuple(pair for pair in _on_gpus(raw.get("gpus"), "uuid", "bytes") if pair[1])
    return State(pid, start_time, container, shim, held, _reclaimed(raw.get("reclaimed")))


def _frameworks(raw: object) -> Iterator[Framework]:
    for entry in _objects(raw, MOST_ENTRIES):
        if isinstance(name := entry.get("name"), str):
            yield Framework(
                _text(name),
                _text_or_none(entry.get("version")),
                tuple(Cap(*pair) for pair in _on_gpus(entry.get("caps"), "gpu", "capBytes")),
                _word(entry.get("notCapped")),
                _number(entry.get("capHits")),
                _word(entry.get("reclaim")),
            )


def _servers(raw: object) -> Iterator[Server]:
    for entry in _objects(raw, MOST_SERVERS):
        texts = [entry.get(key) for key in ("name", "argument", "asked", "applied")]
        name, argument, asked, applied = map(_text_or_none, texts)
        if name is None or argument is None or asked is None or applied is None:
            continue
        version = _text_or_none(entry.get("version"))
        values = asked[:LONGEST_VALUE], applied[:LONGEST_VALUE]
        yield Server(name, version, argument, *values, _word(entry.get("reason")))


def _on_gpus(raw: object, key: str, amount: str) -> Iterator[tuple[str, int]]:
    for entry in _objects(raw, MOST_GPUS):
        uuid, number = entry.get(key), _number(entry.get(amount))
        if isinstance(uuid, str) and _UUID.fullmatch(uuid) and number is not None:
            yield uuid, number


def _reclaimed(raw: object) -> Reclaimed | None:
    if not isinstance(raw, dict) or not isinstance(order := raw.get("id"), str):
        return None
    result = _word(raw.get("result"))
    if result is None or len(order) > LONGEST_ID:
        return None
    return Reclaimed(order, result, _number(raw.get("bytes")))


def _objects(raw: object, most: int) -> list[dict[str, Any]]:
    entries = raw[:most] if isinstance(raw, list) else []
    return [entry for entry in entries if isinstance(entry, dict)]


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else None


def _number(value: object) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and isinstance(value, int) and 0 <= value <= LARGEST else None


def _text_or_none(value: object) -> str | None:
    return _text(value) if isinstance(value, str) else None


def _text(text: str) -> str:
    """Printable and short: half a surrogate, for one, is no UTF-8 and no report."""
    cut = text[:LONGEST_TEXT]
    return cut if cut.isprintable() else "".join(c if c.isprintable() else "?" for c in cut)

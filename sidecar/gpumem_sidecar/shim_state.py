"""What a shim wrote about its process, read with distrust. Pure.

Anybody in the pod can write such a file. It can only misreport its own pod: everything is checked
for form and length here, so that a report with it in is never refused as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from gpumem_sidecar.picture import Framework, Shim

SCHEMA_VERSION = 1
LONGEST_TEXT = 253
MOST_ENTRIES = 16
MOST_GPUS = 256
LARGEST = 2**63 - 1
_UUID = re.compile(r"[A-Za-z0-9._:/-]{1,96}")


class Key(NamedTuple):
    """One process of one pod, for ever."""

    pod_uid: str
    pid: int
    """In its own PID namespace."""
    start_time: int


class State(NamedTuple):
    """One file; `measured` has GPU or MIG UUIDs and the bytes that the process saw there."""

    pid: int
    start_time: int
    container: str
    shim: Shim
    measured: tuple[tuple[str, int], ...] = ()


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
        _applied(raw.get("applied")),
    )
    return State(pid, start_time, container, shim, tuple(_measured(raw.get("gpus"))))


def _frameworks(raw: object) -> Iterator[Framework]:
    for entry in raw[:MOST_ENTRIES] if isinstance(raw, list) else ():
        if isinstance(entry, dict) and isinstance(name := entry.get("name"), str):
            version = entry.get("version")
            yield Framework(_text(name), _text(version) if isinstance(version, str) else None)


def _applied(raw: object) -> Mapping[str, str] | None:
    if not isinstance(raw, dict):
        return None
    plain = [(_text(key), _text(str(value))) for key, value in raw.items() if _is_plain(value)]
    return dict(plain[:MOST_ENTRIES])


def _measured(raw: object) -> Iterator[tuple[str, int]]:
    for entry in raw[:MOST_GPUS] if isinstance(raw, list) else ():
        if not isinstance(entry, dict) or not isinstance(uuid := entry.get("uuid"), str):
            continue
        # A process that has nothing on a card does not list it: 0 is not a measurement.
        if (amount := _number(entry.get("bytes"))) and _UUID.fullmatch(uuid):
            yield uuid, amount


def _is_plain(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _number(value: object) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and isinstance(value, int) and 0 <= value <= LARGEST else None


def _text(text: str) -> str:
    """Printable and short: half a surrogate, for one, is no UTF-8 and no report."""
    cut = text[:LONGEST_TEXT]
    return cut if cut.isprintable() else "".join(c if c.isprintable() else "?" for c in cut)

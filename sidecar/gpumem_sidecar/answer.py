"""What the leader says to a report. Pure, and tolerant of what a newer leader adds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from gpumem_sidecar.picture import Picture

LONGEST_ID = 253


class Limit(NamedTuple):
    """The most that a container may hold on each of its GPUs."""

    pod_uid: str
    container: str
    limit_bytes: int
    container_id: str = ""
    """Without the runtime's name; empty where nobody knows it."""


class Order(NamedTuple):
    """Something that is to be done to one process."""

    id: str
    action: str
    pod_uid: str = ""
    container: str = ""
    pid: int = 0
    """As the report had it."""
    start_time: int = 0


class Answer(NamedTuple):
    """`full`: the leader has no picture of this sender. `urgent`: it wants one every 500 ms."""

    full: bool = False
    limits: tuple[Limit, ...] = ()
    orders: tuple[Order, ...] = ()
    urgent: bool = False


def parse(content: bytes) -> Answer:
    """Raises ValueError where it is no answer of this version."""
    raw = json.loads(content)
    if not isinstance(raw, dict) or raw.get("schemaVersion") != 1:
        raise ValueError("not an answer of version 1")
    return Answer(
        raw.get("next") == "Full",
        tuple(_limits(raw.get("limits"))),
        tuple(_orders(raw.get("orders"))),
        raw.get("urgent") is True,
    )


def is_over(picture: Picture, limits: tuple[Limit, ...]) -> bool:
    """Whether a container is known to hold more on a card than it may."""
    by_id = {(limit.pod_uid, limit.container_id): limit for limit in limits if limit.container_id}
    by_name = {(limit.pod_uid, limit.container): limit for limit in limits}
    held: dict[tuple[Limit, str], int] = {}
    for process in picture.processes:
        pod_uid, container_id = process.pod_uid or "", process.container_id or ""
        limit = by_id.get((pod_uid, container_id.rpartition("://")[2]))
        limit = limit or by_name.get((pod_uid, process.container or ""))
        if limit is not None and process.unknown is None:
            # What is unknown is left out: it can only be more, and a claim is no measurement.
            place = (limit, process.gpu)
            held[place] = held.get(place, 0) + (process.bytes or 0)
    return any(amount > limit.limit_bytes for (limit, _), amount in held.items())


def _limits(raw: Any) -> Iterator[Limit]:
    for entry in _objects(raw):
        pod_uid, container = entry.get("podUid"), entry.get("container")
        amount = entry.get("limitBytes")
        container_id = entry.get("containerId")
        if isinstance(pod_uid, str) and isinstance(container, str) and isinstance(amount, int):
            known = container_id if isinstance(container_id, str) else ""
            yield Limit(pod_uid, container, amount, known)


def _orders(raw: Any) -> Iterator[Order]:
    for entry in _objects(raw):
        known, action = entry.get("id"), entry.get("action")
        if isinstance(known, str) and len(known) <= LONGEST_ID and isinstance(action, str):
            yield Order(known, action, *_process(entry))


def _process(entry: dict[str, Any]) -> tuple[str, str, int, int]:
    """Which process it is about; what is missing is no process's."""
    texts = [entry.get(key) for key in ("podUid", "container")]
    numbers = [entry.get(key) for key in ("pid", "startTime")]
    pod_uid, container = (text if isinstance(text, str) else "" for text in texts)
    pid, start_time = (number if isinstance(number, int) else 0 for number in numbers)
    return pod_uid, container, pid, start_time


def _objects(raw: Any) -> list[dict[str, Any]]:
    return [entry for entry in raw if isinstance(entry, dict)] if isinstance(raw, list) else []

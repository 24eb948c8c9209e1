"""Events as lines for people, and what those of a workload tell of pods that were refused. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.cli.ages import ago

Row = Mapping[str, Any]

_GENERATED: Final = re.compile(r"(\bpods? \"?[a-z0-9./-]*-)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
"""A pod's name with the five letters that the API server adds: of one template, each has others."""


@dataclass(frozen=True)
class Refusal:
    """What admission said about pods that a controller wanted to create."""

    message: str
    times: int
    last: str
    """When it was said last, as the API server has it; empty where nothing says so."""

    def line(self, now: datetime | None) -> str:
        """For people: once, with the number of times."""
        if self.times == 1:
            return f"refused: {self.message}"
        age = ago(self.last, now)
        return f"refused {self.times} times{age and f', last {age}'}: {self.message}"


def event_line(event: Row, now: datetime | None) -> str:
    """An Event with its age: many are told long after they ended."""
    age = ago(time_of(event), now)
    return f"event{age and f', {age}'}: {event.get('reason')}: {event.get('message')}"


def time_of(event: Row) -> str:
    """When it was last seen, as the API server has it; empty where nothing says so."""
    series = event.get("series") or {}
    found = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return str(found or (event.get("metadata") or {}).get("creationTimestamp") or "")


def is_refusal(event: Row) -> bool:
    """Whether a controller tells that admission refused a pod of it."""
    return event.get("reason") == "FailedCreate" and names.GROUP in str(event.get("message") or "")


def refusals(events: Iterable[Row]) -> list[Refusal]:
    """What admission said about pods that a controller wanted to create, each once.

    A refused pod is never stored; its controller posts what it was told, and a person who created
    a pod by hand was told at once, and nobody else.
    """
    found: dict[str, Refusal] = {}
    for event in sorted(filter(is_refusal, events), key=time_of):
        message = str(event["message"])
        alike = _GENERATED.sub(r"\1*", message)
        before = found.get(alike)
        times = _times(event) + (before.times if before else 0)
        found[alike] = Refusal(alike if times > 1 else message, times, time_of(event))
    return sorted(found.values(), key=lambda one: one.last)


def _times(event: Row) -> int:
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)

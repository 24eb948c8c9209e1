"""What the people of a pod are told of at once: that nothing holds its limit, and that it hit it.

Each is told when it begins, at most once in ten minutes for a pod, and at most so many at a time:
what is left over is told at the next look, if it still holds.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gpumem_operator.reports.cap_hits import CapPlace
from gpumem_operator.reports.enforcer import Kind
from gpumem_operator.reports.measured import MeasuredPod
from gpumem_operator.reports.reasons import NO_LIMIT, explain
from gpumem_operator.reports.snapshot import PodView, Snapshot
from gpumem_operator.reports.store import SILENT_AFTER_SECONDS

LIMIT_NOT_HELD: Final = "LimitNotHeld"
CAP_HIT: Final = "CapHit"
PAUSE_SECONDS: Final = 600.0
MOST_AT_ONCE: Final = 20


_New = tuple[str, str, str]
"""Uid of the pod, reason and message."""


@dataclass(frozen=True, slots=True)
class Incident:
    """One Event on one pod."""

    pod: MeasuredPod
    reason: str
    message: str


class Incidents:
    """Remembers what was told. A new leader repeats nothing that may have been told before it."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._kinds: dict[str, Kind] = {}
        self._hits: dict[CapPlace, int] = {}
        self._told: dict[tuple[str, str], float] = {}

    def look(self, snapshot: Snapshot, now: float) -> list[Incident]:
        """What is to be told at `now`, in seconds of the clock of `began`."""
        young = now - self._began <= SILENT_AFTER_SECONDS
        new = [*self._fallen(snapshot.pods, young=young), *self._hit(snapshot, young=young)]
        told: list[Incident] = []
        for uid, reason, message in new:
            if len(told) < MOST_AT_ONCE and self._may_tell(uid, reason, now):
                self._told[uid, reason] = now
                self._accept(uid, reason, snapshot)
                told.append(Incident(snapshot.pods[uid].use.pod, reason, message))
        self._forget(snapshot.pods)
        return told

    def _fallen(self, pods: Mapping[str, PodView], *, young: bool) -> Iterator[_New]:
        for uid, view in pods.items():
            enforcer, before = view.enforcer, self._kinds.get(uid)
            if enforcer.kind not in ("None", "Unknown"):
                self._kinds[uid] = enforcer.kind
            elif enforcer.kind == "None" and before != "None" and enforcer.reason != NO_LIMIT:
                if young and before is None:
                    self._kinds[uid] = "None"
                else:
                    yield uid, LIMIT_NOT_HELD, _not_held(view)

    def _hit(self, snapshot: Snapshot, *, young: bool) -> Iterator[_New]:
        for place, count in snapshot.cap_hits.items():
            before = self._hits.get(place)
            if young and before is None:
                self._hits[place] = count
            elif count > (before or 0) and place.pod_uid in snapshot.pods:
                yield place.pod_uid, CAP_HIT, _ran_into(place, count - (before or 0))

    def _may_tell(self, uid: str, reason: str, now: float) -> bool:
        return now - self._told.get((uid, reason), float("-inf")) >= PAUSE_SECONDS

    def _accept(self, uid: str, reason: str, snapshot: Snapshot) -> None:
        if reason == LIMIT_NOT_HELD:
            self._kinds[uid] = "None"
        else:
            hits = snapshot.cap_hits.items()
            self._hits |= {place: count for place, count in hits if place.pod_uid == uid}

    def _forget(self, uids: Iterable[str]) -> None:
        kept = set(uids)
        self._kinds = {uid: kind for uid, kind in self._kinds.items() if uid in kept}
        self._hits = {key: count for key, count in self._hits.items() if key.pod_uid in kept}
        self._told = {key: then for key, then in self._told.items() if key[0] in kept}


def _not_held(view: PodView) -> str:
    enforcer = view.enforcer
    detail = f" ({enforcer.detail})" if enforcer.detail else ""
    return (
        f"Nothing holds its GPU memory limit: {explain(enforcer.reason)}{detail}."
        f" See kubectl gpumem why pod/{view.use.pod.name}."
    )


def _ran_into(place: CapPlace, times: int) -> str:
    often = "once" if times == 1 else f"{times} times"
    return (
        f"{place.framework} in container {place.container} ran into its memory cap {often}:"
        " allocations failed although the card may have had room. Use less in the program (smaller"
        " batches, emptied caches), or declare more."
    )

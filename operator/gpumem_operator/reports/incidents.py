"""What the people of a pod are told of at once: that nothing holds its limit, and that it hit it.

LimitNotHeld, for a container whose limit is held by None:

- the first that is known of the pod says so, also beside a container that has no limit
- something held the limit before, or it was not known what does
- it is None for another reason than was told since a limit of this container was last held
- a container that asked for no GPU, and so has no limit, holds memory of one

Not where the policy only observes, not for a container that may take whole cards (NoLimit), not
again for what was told and has not been held since, and of a new leader not for pods that an
earlier one had the time to tell of.

Each kind is told at most once in ten minutes for a pod, and at most so many at a time: what is left
over, or could not be posted, is told at a later look, if it still holds.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

from gpumem_operator.api.count import named
from gpumem_operator.reports.cap_hits import CapPlace
from gpumem_operator.reports.enforcer import Enforcer
from gpumem_operator.reports.measured import MeasuredPod
from gpumem_operator.reports.reasons import NO_LIMIT, explain
from gpumem_operator.reports.snapshot import PodView, Snapshot
from gpumem_operator.reports.store import SILENT_AFTER_SECONDS

LIMIT_NOT_HELD: Final = "LimitNotHeld"
CAP_HIT: Final = "CapHit"
PAUSE_SECONDS: Final = 600.0
MOST_AT_ONCE: Final = 20
_MOST_NAMED: Final = 3

Fall = tuple[str, str]
"""Name of a container, and the reason why nothing holds its limit."""


class Hit(NamedTuple):
    """Whose cap was hit, and how often it was when that was told last, and is now."""

    place: CapPlace
    before: int
    now: int


@dataclass(frozen=True, slots=True)
class Incident:
    """One Event on one pod."""

    pod: MeasuredPod
    reason: str
    message: str
    falls: frozenset[Fall] = frozenset()
    """What it tells of, for LimitNotHeld."""
    hits: tuple[Hit, ...] = ()
    """Likewise, for CapHit."""


class Incidents:
    """Remembers what was told.

    A new leader repeats nothing that may have been told before it: until every sender has had the
    time to report to it, what it finds of pods older than `since` is taken for old.
    """

    def __init__(self, began: float, *, since: str) -> None:
        """`began` is of the clock of `look`; `since` is RFC 3339 in UTC, whole seconds."""
        self._began = began
        self._since = since
        self._fallen: dict[str, frozenset[Fall]] = {}
        """By uid, what was told, and was not held since."""
        self._hits: dict[CapPlace, int] = {}
        self._told: dict[tuple[str, str], float] = {}

    def look(
        self,
        snapshot: Snapshot,
        now: float,
        *,
        room: int = MOST_AT_ONCE,
        observed: Callable[[MeasuredPod], bool] = lambda _: False,
    ) -> list[Incident]:
        """What is to be told at `now`, in seconds of the clock of `began`; at most `room`.

        `observed` is whether nothing is to hold a pod's limit, because its policy only observes.
        """
        young = now - self._began <= SILENT_AFTER_SECONDS
        falls = self._falls(snapshot.pods, young=young, observed=observed)
        new = [*falls, *self._hit(snapshot, young=young)]
        told: list[Incident] = []
        for one in new:
            uid, reason = one.pod.uid, one.reason
            if len(told) < min(room, MOST_AT_ONCE) and self._may_tell(uid, reason, now):
                self._told[uid, reason] = now
                self._accept(one)
                told.append(one)
        self._forget(snapshot.pods)
        return told

    def take_back(self, incident: Incident) -> None:
        """It could not be posted: it is told again after the pause, a fall if it still holds."""
        uid = incident.pod.uid
        if incident.falls:
            self._fallen[uid] = self._fallen.get(uid, frozenset()) - incident.falls
        self._hits |= {hit.place: hit.before for hit in incident.hits}

    def _falls(
        self,
        pods: Mapping[str, PodView],
        *,
        young: bool,
        observed: Callable[[MeasuredPod], bool],
    ) -> Iterator[Incident]:
        for uid, view in pods.items():
            falls = _falls_of(view)
            before = self._fallen.get(uid)
            if before is None and not falls:
                if view.enforcer.kind != "Unknown":
                    self._fallen[uid] = frozenset()
                continue
            if falls and observed(view.use.pod):
                # Should the policy come to hold limits, all of it is new.
                self._fallen.pop(uid, None)
                continue
            if before is None and young and self._is_old(view.use.pod):
                self._fallen[uid] = falls
                continue
            kept = _not_held_since(before or frozenset(), view)
            self._fallen[uid] = kept
            if falls - kept:
                yield Incident(view.use.pod, LIMIT_NOT_HELD, _not_held(view), falls)

    def _hit(self, snapshot: Snapshot, *, young: bool) -> Iterator[Incident]:
        found: defaultdict[str, list[Hit]] = defaultdict(list)
        for place, count in snapshot.cap_hits.items():
            if (view := snapshot.pods.get(place.pod_uid)) is None:
                continue
            before = self._hits.get(place)
            if before is None and young and self._is_old(view.use.pod):
                self._hits[place] = count
            elif count > (before or 0):
                found[place.pod_uid].append(Hit(place, before or 0, count))
        for uid, hits in found.items():
            pod = snapshot.pods[uid].use.pod
            yield Incident(pod, CAP_HIT, _ran_into(hits), hits=tuple(hits))

    def _is_old(self, pod: MeasuredPod) -> bool:
        """Whether an earlier leader had the time to tell of it."""
        return pod.created <= self._since

    def _may_tell(self, uid: str, reason: str, now: float) -> bool:
        return now - self._told.get((uid, reason), float("-inf")) >= PAUSE_SECONDS

    def _accept(self, one: Incident) -> None:
        uid = one.pod.uid
        self._hits |= {hit.place: hit.now for hit in one.hits}
        if one.falls:
            self._fallen[uid] = self._fallen.get(uid, frozenset()) | one.falls

    def _forget(self, uids: Iterable[str]) -> None:
        kept = set(uids)
        self._fallen = {uid: falls for uid, falls in self._fallen.items() if uid in kept}
        self._hits = {key: count for key, count in self._hits.items() if key.pod_uid in kept}
        self._told = {key: then for key, then in self._told.items() if key[0] in kept}


def _falls_of(view: PodView) -> frozenset[Fall]:
    return frozenset((name, one.reason) for name, one in _unheld(view).items())


def _unheld(view: PodView) -> Mapping[str, Enforcer]:
    """By container; one that may take whole cards has nothing that could be held."""
    return {
        name: enforcer
        for name, enforcer in view.enforcers.items()
        if enforcer.kind == "None" and enforcer.reason != NO_LIMIT
    }


def _not_held_since(told: Set[Fall], view: PodView) -> frozenset[Fall]:
    """Without those of containers that are held now; what is unknown now is not held."""
    kinds = {name: enforcer.kind for name, enforcer in view.enforcers.items()}
    return frozenset(fall for fall in told if kinds.get(fall[0]) in ("None", "Unknown"))


def _not_held(view: PodView) -> str:
    found, pod = sorted(_unheld(view).items()), view.use.pod
    if len(view.enforcers) == 1:
        text = f"its GPU memory limit: {_why(found[0][1])}"
    else:
        parts = [f"of container {name}: {_why(one)}" for name, one in found[:_MOST_NAMED]]
        more = f"; of {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        text = f"the GPU memory limit {'; '.join(parts)}{more}"
    return f"Nothing holds {text}. See kubectl gpumem why pod/{pod.name} -n {pod.namespace}."


def _why(enforcer: Enforcer) -> str:
    return explain(enforcer.reason) + (f" ({enforcer.detail})" if enforcer.detail else "")


def _ran_into(hits: Sequence[Hit]) -> str:
    told = named([_how_often(hit) for hit in hits], most=_MOST_NAMED)
    return (
        f"{told}: allocations failed although the card may have had room. Use less in the program"
        " (smaller batches, emptied caches), or declare more."
    )


def _how_often(hit: Hit) -> str:
    times = hit.now - hit.before
    often = "once" if times == 1 else f"{times} times"
    place = hit.place
    return f"{place.framework} in container {place.container} ran into its memory cap {often}"

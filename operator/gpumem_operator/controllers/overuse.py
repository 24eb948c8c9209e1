"""The facts about one pod, from what the leader knows: its policy, its condition and its use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.admission.decider import Decider, decide
from gpumem_operator.api.policy import Enforcement
from gpumem_operator.api.records import Surroundings
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.entries import PodEntry
from gpumem_operator.controllers.usage import UsageBoard
from gpumem_operator.controllers.worker import timestamp
from gpumem_operator.enforcement.ending import USUAL_SECONDS, Ending
from gpumem_operator.enforcement.facts import NOT_JUDGED, Condition, Facts, Hold, Mode, Target
from gpumem_operator.enforcement.judged import FRESH_SECONDS, holds_of, killable, reclaimable
from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.sidecar_view import sidecar_view
from gpumem_operator.reports.uses import GpuUse, PodUse

Raw = Mapping[str, Any]
_NOBODY: Final = Decider(None, None, "no policy")
_NO_ROWS: Final[tuple[GpuUse, ...]] = ()


@dataclass(frozen=True)
class Suspect:
    """A pod with something to decide about: its use and the policy that decides."""

    entry: PodEntry
    facts: Facts
    decider: Decider

    @property
    def title(self) -> str:
        return self.entry.measured.title

    @property
    def owner(self) -> str:
        """UID of the controller that made it; empty without one."""
        return self.entry.controller.get("uid", "")


class Gathering:
    """Facts of pods at one moment; surroundings of a namespace are gathered once."""

    def __init__(self, cache: Cache, board: UsageBoard) -> None:
        self._cache = cache
        self._board = board
        self._surroundings: dict[str, Surroundings] = {}

    def suspects(self, uses: Iterable[PodUse]) -> Iterable[Suspect]:
        """Pods that hold something, or that something was said about."""
        for use in uses:
            entry = self._board.entry(use.pod.uid)
            if entry is not None and (found := self._suspect(entry, use)) is not None:
                yield found

    def _suspect(self, entry: PodEntry, use: PodUse) -> Suspect | None:
        # First what costs least: of ten thousand pods this is asked every few seconds.
        said = entry.pod["status"].get("overuse")
        if not entry.handled or not (said or any(row.amount.bytes for row in use.rows)):
            return None
        stored = stored_condition(entry)
        holds = holds_of(use, age_seconds=self._age(use))
        if stored is None and not any(hold.used.bytes for hold in holds):
            return None
        if self._cache.is_ignored(entry.measured.namespace):
            return None
        decider = self._decider(entry) or _NOBODY
        if decider.spec is None and (stored is None or stored.reason == NOT_JUDGED):
            return None
        settings = decider.spec.enforcement if decider.spec else Enforcement()
        facts = Facts(
            uid=use.pod.uid,
            mode=_mode(decider),
            settings=settings,
            holds=holds,
            stored=stored,
            ending=_ending(entry),
            asks_seconds=entry.pod["spec"].get("terminationGracePeriodSeconds", USUAL_SECONDS),
            reclaimable=self._reclaimable(use, holds),
            killable=killable(use, holds),
        )
        return Suspect(entry, facts, decider)

    def _decider(self, entry: PodEntry) -> Decider | None:
        namespace = entry.measured.namespace
        if namespace not in self._surroundings:
            self._surroundings[namespace] = self._cache.surroundings(namespace)
        return decide(entry.labels, self._surroundings[namespace])

    def _age(self, use: PodUse) -> float:
        kind = "NodeAgent" if use.source == "NodeAgent" else "Sidecar"
        who = use.pod.node if use.source == "NodeAgent" else use.pod.uid
        return self._board.age_of(Sender(kind, who))  # type: ignore[arg-type]

    def _reclaimable(self, use: PodUse, holds: Iterable[Hold]) -> tuple[Target, ...]:
        """The pod's own sidecar carries orders out where there is one: it can write beside the
        shim's files, which an agent may only where the chart lets it."""
        if not any(hold.is_over for hold in holds):
            return ()
        sidecar = Sender("Sidecar", use.pod.uid)
        if self._board.age_of(sidecar) <= FRESH_SECONDS:
            picture = self._board.store.picture(sidecar)
            rows = sidecar_view(use.pod, picture).rows if picture else _NO_ROWS
            if found := reclaimable(rows, holds, sidecar):
                return found
        if use.source != "NodeAgent":
            return ()
        return reclaimable(use.rows, holds, Sender("NodeAgent", use.pod.node))


def _mode(decider: Decider) -> Mode:
    if decider.spec is None:
        return "None"
    return decider.spec.enforcement.mode if decider.active else "Audit"


def _ending(entry: PodEntry) -> Ending | None:
    """What the API server has told the pod."""
    metadata = entry.pod["metadata"]
    by = _moment(metadata.get("deletionTimestamp"))
    return Ending(by, metadata.get("deletionGracePeriodSeconds") or 0) if by else None


def stored_condition(entry: PodEntry) -> Condition | None:
    """The pod's condition about overuse; None where there is none that can be read."""
    raw: Raw = entry.pod["status"].get("overuse") or {}
    status, reason = raw.get("status"), raw.get("reason")
    since = _moment(raw.get("lastTransitionTime"))
    if status not in ("True", "False") or not isinstance(reason, str) or since is None:
        return None
    began = _moment(raw.get("lastProbeTime")) or since
    return Condition(status, reason, since, began, str(raw.get("message") or ""))


def raw_condition(condition: Condition) -> dict[str, Any]:
    """The condition as it is stored in the pod's status; times are whole seconds."""
    return {
        "type": names.OVERUSE_CONDITION,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": timestamp(condition.since),
        "lastProbeTime": timestamp(condition.step_began),
    }


def _moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)).astimezone(UTC) if text else None
    except ValueError:
        return None

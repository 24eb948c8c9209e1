"""What enforcement tells in the status of a policy: `recentActions` and the condition Overuse."""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from gpumem_operator.api.conditions import NO_PODS_OVER_LIMIT, OVERUSE, PODS_OVER_LIMIT
from gpumem_operator.api.policy import PolicySpec
from gpumem_operator.api.transitions import Finding, condition, renew_conditions
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.entries import PolicyEntry
from gpumem_operator.controllers.overuse import Suspect
from gpumem_operator.controllers.table import Key
from gpumem_operator.controllers.worker import attempt, timestamp
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.enforcement.decision import Record
from gpumem_operator.kube.resources import POLICIES

MOST: Final = 20
"""Entries of a policy, by its schema."""
_LONGEST_REASON: Final = 1024
_SHOWN_PODS: Final = 5
LOOP_WINDOW: Final = timedelta(hours=1)


class RecentActions:
    """Gathers lines, and writes them with the policy's version until that works."""

    def __init__(self, cache: Cache, writer: Writer) -> None:
        self._cache = cache
        self._writer = writer
        self._waiting: defaultdict[Key, deque[dict[str, Any]]] = defaultdict(
            lambda: deque(maxlen=MOST)
        )
        self._evictions: dict[str, tuple[str, datetime]] = {}
        """Owner and time by the pod's uid: also of pods that no policy's status tells about."""

    def add(self, suspect: Suspect, record: Record, now: datetime) -> None:
        """One line about a pod. What becomes of it in a tenant's default policy, an Event tells."""
        pod = suspect.entry.measured
        if suspect.owner and record.action in ("Evict", "Delete") and record.result == "Done":
            self._evictions[pod.uid] = suspect.owner, now
        if suspect.decider.policy_name is not None:
            entry = {
                "time": timestamp(now),
                "pod": pod.name,
                "uid": pod.uid,
                "ownerUid": suspect.owner or None,
                "limitBytes": record.limit_bytes,
                "usedBytes": record.used_bytes,
                "action": record.action,
                "result": record.result,
                "reason": record.message[:_LONGEST_REASON],
            }
            line = {key: value for key, value in entry.items() if value is not None}
            self._waiting[pod.namespace, suspect.decider.policy_name].appendleft(line)

    def tells_of(self, suspect: Suspect) -> bool:
        """Whether it is known, or told in a status, that this very pod was taken away."""
        uid = suspect.facts.uid
        return uid in self._evictions or any(
            line.get("uid") == uid and _was_taken_away(line)
            for entry in self._cache.policies_of(suspect.entry.measured.namespace)
            for line in entry.status.get("recentActions") or ()
        )

    def evictions_of(self, suspect: Suspect, now: datetime) -> int:
        """Of other pods of the same owner within the last hour, by memory and by statuses."""
        owner, pod = suspect.owner, suspect.entry.measured
        if not owner:
            return 0
        self._evictions = {
            uid: known for uid, known in self._evictions.items() if now - known[1] < LOOP_WINDOW
        }
        uids = {uid for uid, (of, _) in self._evictions.items() if of == owner}
        earliest = timestamp(now - LOOP_WINDOW)
        for entry in self._cache.policies_of(pod.namespace):
            uids |= {
                line["uid"]
                for line in entry.status.get("recentActions") or ()
                if line.get("ownerUid") == owner
                and _was_taken_away(line)
                and line.get("time", "") > earliest
            }
        return len(uids - {pod.uid})

    async def write(self, over: Mapping[Key, Collection[str]] | None, now: datetime) -> None:
        """Everything that waits; `over` has names of pods over their limit by policy, of all
        policies, or is None where only a part of the pods was looked at."""
        keys = set(self._waiting)
        if over is not None:
            keys |= {
                key
                for key, row in self._cache.policies.rows()
                if over.get(key) or _is_to_be_told_again(row.value)
            }
        for key in sorted(keys):
            row = self._cache.policies.get(key)
            if row is None:
                self._waiting.pop(key, None)
                continue
            with attempt("enforcement", f"policy {key[0]}/{key[1]}"):
                names = None if over is None else over.get(key, ())
                await self._write(key, row.version, row.value, names, now)

    async def _write(
        self,
        key: Key,
        version: int,
        entry: PolicyEntry,
        over: Iterable[str] | None,
        now: datetime,
    ) -> None:
        status: dict[str, Any] = {}
        lines = tuple(self._waiting.get(key, ()))
        if lines:
            stored = entry.status.get("recentActions") or ()
            status["recentActions"] = [*lines, *stored][:MOST]
        if over is not None and (finding := _finding(sorted(over), entry)):
            status["conditions"] = renew_conditions(
                entry.status.get("conditions") or (),
                [finding],
                generation=entry.record.generation,
                now=timestamp(now),
            )
        if status:
            path = POLICIES.path(key[1], namespace=key[0], subresource="status")
            self._cache.policies.see(await self._writer.store_status(path, version, status))
        for _ in lines:
            self._waiting[key].pop()
        if not self._waiting.get(key):
            self._waiting.pop(key, None)


def _was_taken_away(line: Mapping[str, Any]) -> bool:
    return line.get("action") in ("Evict", "Delete") and line.get("result") == "Done"


def _is_to_be_told_again(entry: PolicyEntry) -> bool:
    """Whether its condition may be wrong where no pod is over its limit."""
    stored = condition(entry.status, OVERUSE)
    return stored.get("status") == "True" or (bool(stored) and _is_outdated(stored, entry))


def _is_outdated(stored: Mapping[str, Any], entry: PolicyEntry) -> bool:
    return stored.get("observedGeneration") != entry.record.generation


def _finding(over: list[str], entry: PolicyEntry) -> Finding | None:
    """What is to be stored; None where it is already."""
    if not over:
        text = "No pod is known to hold more than its limit."
        wanted = Finding(OVERUSE, "False", NO_PODS_OVER_LIMIT, text)
    else:
        shown = ", ".join(over[:_SHOWN_PODS]) + (", ..." if len(over) > _SHOWN_PODS else "")
        count = "1 pod holds" if len(over) == 1 else f"{len(over)} pods hold"
        text = f"{count} more than allowed: {shown}. {_what_is_done(entry.record.spec)}."
        wanted = Finding(OVERUSE, "True", PODS_OVER_LIMIT, text)
    stored = condition(entry.status, OVERUSE)
    same = (stored.get("status"), stored.get("message")) == (wanted.status, wanted.message)
    return None if same and not _is_outdated(stored, entry) else wanted


def _what_is_done(spec: PolicySpec | None) -> str:
    """Who turns Enforce on shall know beforehand that the grace period is running already."""
    if spec is None:
        return "Nothing is done, because the policy can not be read"
    if spec.mode == "Active" and spec.enforcement.mode == "Enforce":
        return "recentActions tells what was done"
    seconds = spec.enforcement.grace_period_seconds
    return (
        "Nothing is done. Mode Enforce would act at once on those that have been over for longer"
        f" than gracePeriodSeconds ({seconds} s)"
    )

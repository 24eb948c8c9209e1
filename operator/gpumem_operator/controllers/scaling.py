"""Replicas of workloads: looked at every few seconds, written where a decision changes them.

gather all workloads -> decide one after the other -> status -> scale -> event

A decision is in the policy's status before it is carried out, so that whoever leads next remembers
it even where this process ends in between. Then the change was announced and not made, which the
next decision sees.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from gpumem_operator.api.conditions import SCALING_ACTIVE
from gpumem_operator.api.records import PolicyRecord
from gpumem_operator.api.stored_status import differs
from gpumem_operator.api.transitions import Finding, condition, renew_conditions
from gpumem_operator.controllers.about import about, about_policy
from gpumem_operator.controllers.alarms import Alarms
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.engine_signals import asking
from gpumem_operator.controllers.entries import PolicyEntry
from gpumem_operator.controllers.options import Periods
from gpumem_operator.controllers.scale_targets import why_not, write_scale
from gpumem_operator.controllers.table import Key, Row
from gpumem_operator.controllers.tenant_rooms import TenantRooms
from gpumem_operator.controllers.worker import attempt, timestamp, utc_now
from gpumem_operator.controllers.workloads import Gatherer, Workload
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.errors import ApiError, Conflict
from gpumem_operator.kube.resources import POLICIES
from gpumem_operator.metrics.controller import RECONCILE_SECONDS
from gpumem_operator.reports.snapshot import Snapshot
from gpumem_operator.scaling import reasons
from gpumem_operator.scaling.condition import scaling_active, settled_entries
from gpumem_operator.scaling.decision import Decision, decide
from gpumem_operator.scaling.facts import Hold, TargetFacts, TenantRoom
from gpumem_operator.scaling.stored import Entry, decided, memory_of, refused

_TRIES: Final = 5
"""Of a status that others write as well."""
_REFUSED: Final = timedelta(minutes=5)
"""So long nothing is tried where the API server refused a change of replicas."""
_NUMBERS_STAND: Final = timedelta(minutes=1)
"""So long a number of an engine stands in a status where nothing else changes: it moves with every
look, and each write wakes whoever watches policies."""
Place = tuple[Key, str]
"""A policy and one of its targets."""


@dataclass(frozen=True)
class _Outcome:
    """What becomes of one workload."""

    workload: Workload
    entry: Entry
    decision: Decision | None = None


class ScalingWorker:
    """Keeps the replicas of scaling targets right while this process leads."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        *,
        snapshot: Callable[[], Snapshot],
        periods: Periods,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._cache = cache
        self._writer = writer
        self._snapshot = snapshot
        self._periods = periods
        self._now = now
        self._alarms = Alarms(writer, now)
        self._refused: dict[Place, tuple[datetime, Hold]] = {}
        self._told: dict[Key, datetime] = {}
        """When the status of a policy was written."""
        self._unsaid: set[Key] = set()
        """Policies whose scaling stopped, of which no event has told yet."""

    async def run(self) -> None:
        async with asking() as signals:
            gatherer = Gatherer(self._cache, self._writer, signals)
            while True:
                with attempt("scaling", "one look"), RECONCILE_SECONDS.labels("scaling").time():
                    await self.look(gatherer)
                await asyncio.sleep(self._periods.scaling)

    async def look(self, gatherer: Gatherer) -> None:
        """Decide about every workload once, and do what follows."""
        entries = [
            row.value
            for _, row in self._cache.policies.rows()
            if _wants_scaling(row.value.record) or _tells_of_scaling(row.value.status)
        ]
        keys = {_key(entry.record) for entry in entries}
        self._told = {key: at for key, at in self._told.items() if key in keys}
        self._unsaid &= keys
        self._refused = {place: why for place, why in self._refused.items() if place[0] in keys}
        if not entries:
            return
        snapshot = self._snapshot()
        workloads = await gatherer.workloads((entry.record for entry in entries), snapshot)
        rooms = TenantRooms(self._cache, snapshot)
        for workload in workloads:
            _pledge(rooms, workload, workload.scale.replicas if workload.scale else 0)
        for key in [_key(entry.record) for entry in entries]:
            own = [workload for workload in workloads if _key(workload.policy) == key]
            with attempt("scaling", f"policy {key[0]}/{key[1]}"):
                await self._follow(key, own, rooms)

    async def _follow(self, key: Key, workloads: Sequence[Workload], rooms: TenantRooms) -> None:
        """Tell what was decided about a policy's workloads, then do it."""
        for _ in range(_TRIES):
            row = self._cache.policies.get(key)
            if row is None or row.value.record.spec is None:
                return
            outcomes = [self._outcome(one, row.value, rooms) for one in workloads]
            try:
                await self._tell(row, outcomes)
                break
            except Conflict:
                # Another status was written; the watch brings it in a moment.
                await asyncio.sleep(self._periods.settle)
        else:
            return
        for outcome in outcomes:
            if outcome.decision is not None and outcome.decision.changes:
                with attempt("scaling", outcome.workload.title):
                    await self._scale(outcome.workload, outcome.decision)

    def _outcome(self, workload: Workload, entry: PolicyEntry, rooms: TenantRooms) -> _Outcome:
        target, scale = workload.target, workload.scale
        memory = memory_of(entry.status.get("scaling") or (), target.target_ref)
        why = workload.why_not or self._refusal(workload)
        if scale is None or why is not None:
            told = why or Hold(reasons.UNREADABLE, "Its scale was not read.")
            replicas = scale.replicas if scale else None
            refusal = refused(target.target_ref, told, memory, replicas=replicas)
            return _Outcome(workload, refusal)
        facts = TargetFacts(scale.replicas, workload.pods, _rooms(rooms, workload))
        made = decide(target, facts, memory, now=int(self._now().timestamp()))
        if workload.policy.spec is not None and workload.policy.spec.mode == "Observe":
            made = made.only_told()
        _pledge(rooms, workload, made.desired)
        return _Outcome(workload, decided(target.target_ref, made), made)

    def _refusal(self, workload: Workload) -> Hold | None:
        """Why its replicas could not be changed a short while ago."""
        place = _place(workload)
        if place not in self._refused:
            return None
        at, why = self._refused[place]
        if self._now() - at < _REFUSED:
            return why
        del self._refused[place]
        return None

    async def _tell(self, row: Row[PolicyEntry], outcomes: Sequence[_Outcome]) -> None:
        """Write `status.scaling` and the condition where they differ. Raises Conflict."""
        record, status = row.value.record, row.value.status
        stored = status.get("scaling") or []
        key = _key(record)
        told_at = self._told.get(key)
        entries = settled_entries(
            [one.entry for one in outcomes],
            stored,
            numbers_are_old=told_at is None or self._now() - told_at >= _NUMBERS_STAND,
        )
        finding = scaling_active(entries) if entries else None
        conditions = self._conditions(record, status, finding)
        told = {"scaling": entries, "conditions": conditions}
        if differs(status, told):
            path = POLICIES.path(record.name, namespace=record.namespace, subresource="status")
            await self._writer.store_status(path, row.version, told)
            self._told[key] = self._now()
            if finding and condition(status, SCALING_ACTIVE).get("reason") != finding.reason:
                self._unsaid.add(key)
        # What was decided is done also where nobody can be told of it.
        with attempt("scaling", f"event on policy {key[0]}/{key[1]}"):
            await self._warn(record, finding)

    def _conditions(
        self, record: PolicyRecord, status: Mapping[str, Any], finding: Finding | None
    ) -> list[Any]:
        current = status.get("conditions") or []
        if finding is None:
            return [one for one in current if one.get("type") != SCALING_ACTIVE]
        return renew_conditions(
            current, [finding], generation=record.generation, now=timestamp(self._now())
        )

    async def _warn(self, policy: PolicyRecord, finding: Finding | None) -> None:
        """One event where scaling stops; where a new leader has yet to hear of use, later."""
        key = _key(policy)
        if finding is None or finding.status == "True":
            self._unsaid.discard(key)
        if finding is None or key not in self._unsaid:
            return
        if finding.reason == reasons.TOO_MANY_UNKNOWN and not self._alarms.hears_of_all:
            return
        await self._alarms.tell(about_policy(policy), kind=finding.reason, message=finding.message)
        self._unsaid.discard(key)

    async def _scale(self, workload: Workload, made: Decision) -> None:
        reference, scale = workload.target.target_ref, workload.scale
        assert scale is not None
        namespace = workload.policy.namespace
        try:
            await write_scale(
                self._writer, scale, reference, namespace=namespace, replicas=made.desired
            )
        except Conflict:
            # Somebody else has changed it: the next look begins from there.
            raise
        except ApiError as error:
            self._refused[_place(workload)] = (self._now(), why_not(error, workload.title))
            raise
        changed = about(
            reference.kind,
            api_version=reference.api_version,
            namespace=namespace,
            name=reference.name,
            uid=scale.uid,
        )
        message = f"{made.message} (policy {workload.policy.name})"
        await self._writer.note(
            changed, reason=made.reason, message=message, now=timestamp(self._now())
        )


def _rooms(rooms: TenantRooms, workload: Workload) -> tuple[TenantRoom, ...]:
    uids = [entry.measured.uid for entry in workload.entries]
    return rooms.of(_place(workload), workload.policy.namespace, uids)


def _pledge(rooms: TenantRooms, workload: Workload, replicas: int) -> None:
    rooms.pledge(
        _place(workload), _rooms(rooms, workload), pods=len(workload.pods), replicas=replicas
    )


def _key(policy: PolicyRecord) -> Key:
    return policy.namespace, policy.name


def _place(workload: Workload) -> Place:
    reference = workload.target.target_ref
    title = f"{reference.api_version} {reference.kind} {reference.name}"
    return _key(workload.policy), title


def _wants_scaling(policy: PolicyRecord) -> bool:
    return policy.spec is not None and bool(policy.spec.scaling)


def _tells_of_scaling(status: Mapping[str, Any]) -> bool:
    return bool(status.get("scaling") or condition(status, SCALING_ACTIVE))

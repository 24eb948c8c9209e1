"""Everything that a decision about the replicas of a workload needs, gathered at one moment."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gpumem_operator.admission.selection import rank
from gpumem_operator.api.records import PolicyRecord
from gpumem_operator.api.scaling import ScalingTarget
from gpumem_operator.controllers import other_scalers
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.engine_signals import EngineSignals
from gpumem_operator.controllers.entries import PodEntry
from gpumem_operator.controllers.scale_targets import NoScale, Scale, read_scale
from gpumem_operator.controllers.target_pods import Signal, owned_by_others, pods_of, target_pods
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.discovery import Discovery
from gpumem_operator.kube.errors import ApiError
from gpumem_operator.reports.snapshot import Snapshot
from gpumem_operator.scaling import reasons
from gpumem_operator.scaling.facts import Hold, TargetPod

_AT_ONCE: Final = 16
"""Targets that are looked at side by side."""
Scalers = Mapping[other_scalers.Key, str] | Hold


@dataclass(frozen=True)
class Workload:
    """One entry of a policy's `spec.scaling`, and what was found."""

    policy: PolicyRecord
    target: ScalingTarget
    why_not: Hold | None = None
    """Why it is not scaled, whatever its pods hold."""
    scale: Scale | None = None
    entries: tuple[PodEntry, ...] = ()
    pods: tuple[TargetPod, ...] = ()

    @property
    def title(self) -> str:
        reference = self.target.target_ref
        return f"{reference.kind} {self.policy.namespace}/{reference.name}"


class Gatherer:
    """Asks the API server for scales and autoscalers, and pods for the signals of their engines."""

    def __init__(self, cache: Cache, writer: Writer, signals: EngineSignals) -> None:
        self._cache = cache
        self._writer = writer
        self._signals = signals
        self._discovery = Discovery(writer.api)
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def workloads(
        self, policies: Iterable[PolicyRecord], snapshot: Snapshot
    ) -> list[Workload]:
        """Of all these policies, in their order; nothing that goes wrong with one raises."""
        ranked = sorted(policies, key=rank)
        wanted = [(one, target) for one in ranked if one.spec for target in one.spec.scaling]
        first: dict[tuple[str, other_scalers.Key], str] = {}
        for policy, target in wanted:
            place = (policy.namespace, other_scalers.key_of(target.target_ref))
            first.setdefault(place, policy.name)
        spaces = {policy.namespace for policy, _ in wanted}
        scalers = dict(zip(spaces, await asyncio.gather(*map(self._scalers, spaces)), strict=True))
        return await asyncio.gather(
            *(
                self._workload(policy, target, snapshot, scalers=scalers, first=first)
                for policy, target in wanted
            )
        )

    async def _scalers(self, namespace: str) -> Scalers:
        try:
            return await other_scalers.scalers_of(self._writer.api, namespace)
        except ApiError as error:
            text = f"Whether other autoscalers have the same target is not known: {error}."
            return Hold(reasons.UNREADABLE, text)

    async def _workload(
        self,
        policy: PolicyRecord,
        target: ScalingTarget,
        snapshot: Snapshot,
        *,
        scalers: Mapping[str, Scalers],
        first: Mapping[tuple[str, other_scalers.Key], str],
    ) -> Workload:
        key = other_scalers.key_of(target.target_ref)
        winner = first[policy.namespace, key]
        why = _scaled_by_others(policy, target, winner, scalers[policy.namespace])
        try:
            async with self._places:
                scale = await read_scale(
                    self._discovery, self._writer, target.target_ref, namespace=policy.namespace
                )
        except NoScale as error:
            return Workload(policy, target, error.why)
        entries = pods_of(self._cache, policy.namespace, scale.selector)
        if why is None:
            records = [one.record for one in self._cache.policies_of(policy.namespace)]
            why = owned_by_others(policy, entries, records)
        signals: Mapping[str, Signal] = {}
        if why is None and target.engine_signal is not None:
            signals = await self._signals.of_pods(entries, target.engine_signal)
        pods = target_pods(entries, snapshot, signals)
        return Workload(policy, target, why, scale, tuple(entries), pods)


def _scaled_by_others(
    policy: PolicyRecord, target: ScalingTarget, winner: str, scalers: Scalers
) -> Hold | None:
    reference = target.target_ref
    if isinstance(scalers, Hold):
        return scalers
    other = scalers.get(other_scalers.key_of(reference))
    if other is not None:
        return Hold(
            reasons.OTHER_SCALER,
            f"{other} has the same target, {reference.kind} {reference.name}, and two autoscalers"
            " would pull at its replicas: delete it, or the entry of spec.scaling.",
        )
    if winner != policy.name:
        return Hold(
            reasons.OTHER_POLICY_SCALES,
            f"Policy {winner} comes first and has the same target, {reference.kind}"
            f" {reference.name}: delete one of the two entries of spec.scaling.",
        )
    return None

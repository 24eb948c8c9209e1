"""Everything that a decision about the replicas of a workload needs, gathered at one moment."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from gpumem_operator.admission.selection import rank
from gpumem_operator.api.records import PolicyRecord
from gpumem_operator.api.scaling import ScalingTarget
from gpumem_operator.controllers import other_scalers
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.engine_signals import EngineSignals
from gpumem_operator.controllers.entries import PodEntry
from gpumem_operator.controllers.scale_targets import NoScale, Scale, read_scale
from gpumem_operator.controllers.target_pods import Signal, owners_of, pods_of, target_pods
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.discovery import Discovery
from gpumem_operator.kube.errors import ApiError
from gpumem_operator.reports.snapshot import Snapshot
from gpumem_operator.scaling import reasons
from gpumem_operator.scaling.facts import Hold, TargetPod
from gpumem_operator.scaling.scaler import who_scales

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
        """Of all these policies, those that come first before others; nothing that goes wrong with
        one raises."""
        ranked = sorted(policies, key=rank)
        wanted = [(one, target) for one in ranked if one.spec for target in one.spec.scaling]
        spaces = {policy.namespace for policy, _ in wanted}
        scalers = dict(zip(spaces, await asyncio.gather(*map(self._scalers, spaces)), strict=True))
        found = await asyncio.gather(
            *(self._found(policy, target, scalers[policy.namespace]) for policy, target in wanted)
        )
        settled = self._with_one_scaler(found)
        return await asyncio.gather(*(self._measured(one, snapshot) for one in settled))

    async def _scalers(self, namespace: str) -> Scalers:
        try:
            return await other_scalers.scalers_of(self._writer.api, namespace)
        except ApiError as error:
            text = f"Whether other autoscalers have the same target is not known: {error}."
            return Hold(reasons.UNREADABLE, text)

    async def _found(
        self, policy: PolicyRecord, target: ScalingTarget, scalers: Scalers
    ) -> Workload:
        """Its scale and its pods, without what they hold."""
        try:
            async with self._places:
                scale = await read_scale(
                    self._discovery, self._writer, target.target_ref, namespace=policy.namespace
                )
        except NoScale as error:
            return Workload(policy, target, error.why)
        entries = pods_of(self._cache, policy.namespace, scale.selector)
        why = _scaled_by_others(target, scalers)
        return Workload(policy, target, why, scale, tuple(entries))

    def _with_one_scaler(self, found: Iterable[Workload]) -> list[Workload]:
        """The same, of which at most one has the say about each workload."""
        settled = list(found)
        claims: defaultdict[tuple[str, other_scalers.Key], list[int]] = defaultdict(list)
        for index, one in enumerate(settled):
            if one.why_not is None:
                key = other_scalers.key_of(one.target.target_ref)
                claims[one.policy.namespace, key].append(index)
        for (namespace, _), indices in claims.items():
            records = [one.record for one in self._cache.policies_of(namespace)]
            owners = owners_of(settled[indices[0]].entries, records)
            answers = who_scales([settled[index].policy.name for index in indices], owners)
            for index, why in zip(indices, answers, strict=True):
                settled[index] = replace(settled[index], why_not=why)
        return settled

    async def _measured(self, found: Workload, snapshot: Snapshot) -> Workload:
        signals: Mapping[str, Signal] = {}
        engine = found.target.engine_signal
        if found.why_not is None and engine is not None:
            signals = await self._signals.of_pods(found.entries, engine)
        return replace(found, pods=target_pods(found.entries, snapshot, signals))


def _scaled_by_others(target: ScalingTarget, scalers: Scalers) -> Hold | None:
    """Because of an autoscaler that is none of ours."""
    reference = target.target_ref
    if isinstance(scalers, Hold):
        return scalers
    other = scalers.get(other_scalers.key_of(reference))
    if other is None:
        return None
    return Hold(
        reasons.OTHER_SCALER,
        f"{other} has the same target, {reference.kind} {reference.name}, and two autoscalers"
        " would pull at its replicas: delete it, or the entry of spec.scaling.",
    )

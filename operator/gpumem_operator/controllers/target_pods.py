"""The pods of a workload, as decisions about its replicas see them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction

from gpumem_operator import names
from gpumem_operator.admission.selection import policy_for
from gpumem_operator.api.records import PolicyRecord
from gpumem_operator.api.selector import LabelSelector
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.entries import PodEntry
from gpumem_operator.reports.reasons import NO_REPORT
from gpumem_operator.reports.snapshot import Snapshot
from gpumem_operator.scaling.facts import TargetPod
from gpumem_operator.scaling.preallocators import preallocating_framework

Signal = Fraction | str
"""The metric of a pod's engine, or one word for why it was not read."""


def pods_of(cache: Cache, namespace: str, selector: LabelSelector) -> list[PodEntry]:
    """GPU pods that count for the workload, by name."""
    found = [
        entry
        for entry in cache.pods_of(namespace)
        if entry.gpu
        and not entry.finished
        and not entry.terminating
        and selector.matches(entry.labels)
    ]
    return sorted(found, key=lambda entry: entry.measured.name)


def target_pods(
    entries: Iterable[PodEntry], snapshot: Snapshot, signals: Mapping[str, Signal]
) -> tuple[TargetPod, ...]:
    """`signals` are by uid; a pod that is not among them was not asked."""
    return tuple(_target_pod(entry, snapshot, signals) for entry in entries)


def _target_pod(entry: PodEntry, snapshot: Snapshot, signals: Mapping[str, Signal]) -> TargetPod:
    uid = entry.measured.uid
    view = snapshot.pods.get(uid)
    signal = signals.get(uid)
    framework = preallocating_framework(view.use, entry.growing) if view else None
    return TargetPod(
        name=entry.measured.name,
        started=view.measure.started if view else entry.measured.started,
        limit_bytes=entry.charge(),
        used_bytes=view.used_bytes if view else None,
        unknown=view.use.total.unknown if view else NO_REPORT,
        preallocator=entry.server or framework,
        signal=signal if isinstance(signal, Fraction) else None,
        signal_unknown=signal if isinstance(signal, str) else None,
    )


def owners_of(entries: Iterable[PodEntry], policies: Sequence[PolicyRecord]) -> Mapping[str, str]:
    """Names of the policies that decide for pods, by pod; empty where none does."""
    known = {one.name for one in policies}
    return {entry.measured.name: _owner(entry, policies, known) for entry in entries}


def _owner(entry: PodEntry, policies: Sequence[PolicyRecord], known: Collection[str]) -> str:
    """Who admitted it, and where that is nobody any more, who selects it."""
    owner = entry.labels.get(names.POLICY_LABEL, "") if entry.handled else ""
    if owner in known:
        return owner
    winner = policy_for(entry.labels, policies)
    return winner.name if winner else ""

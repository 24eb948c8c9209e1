"""Who else queues, places or limits a pod: Kueue, KAI, HAMi and Run:ai, told from the pod alone.

Their marks can be written by whoever creates the pod, so nothing that is charged follows from them.
Sources: Kueue's constants (gates and labels under kueue.x-k8s.io), KAI's defaults (scheduler
kai-scheduler, label kai.scheduler/queue, before that runai/queue), HAMi's protocol (scheduler
hami-scheduler, resources nvidia.com/gpumem and its like, annotations hami.io/*) and the manual of
Run:ai (scheduler runai-scheduler, labels runai/*).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

ManagerName = Literal["Kueue", "KAI", "HAMi", "RunAI"]

_SCHEDULERS: Final[Mapping[str, ManagerName]] = {
    "kai-scheduler": "KAI",
    "hami-scheduler": "HAMi",
    "runai-scheduler": "RunAI",
}
_DOMAINS: Final[Mapping[str, ManagerName]] = {
    "kueue.x-k8s.io": "Kueue",
    "kai.scheduler": "KAI",
    "runai": "RunAI",
    "run.ai": "RunAI",
}
"""Of gates, labels and annotations: what stands before the slash."""
_HAMI_ANNOTATIONS: Final = "hami.io"
"""A label of this domain keeps HAMi away from a pod."""
_HAMI_RESOURCES: Final = frozenset(
    {"nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"}
)


@dataclass(frozen=True)
class Manager:
    """One of them, and the first sign of it in the pod."""

    name: ManagerName
    sign: str
    """For people: `gate kueue.x-k8s.io/admission`."""

    def __str__(self) -> str:
        return f"{self.name} ({self.sign})"


def managers_of(pod: Mapping[str, Any]) -> tuple[Manager, ...]:
    """Those whose signs a raw pod bears, by name."""
    found: dict[ManagerName, str] = {}
    for name, sign in _signs(pod):
        found.setdefault(name, sign)
    # KAI's queue label was Run:ai's once; the scheduler says whose it is.
    if (pod.get("spec") or {}).get("schedulerName") == "kai-scheduler":
        found.pop("RunAI", None)
    return tuple(Manager(name, sign) for name, sign in sorted(found.items()))


def _signs(pod: Mapping[str, Any]) -> Iterator[tuple[ManagerName, str]]:
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    scheduler = spec.get("schedulerName") or ""
    if scheduler in _SCHEDULERS:
        yield _SCHEDULERS[scheduler], f"scheduler {scheduler}"
    for gate in spec.get("schedulingGates") or ():
        yield from _of_domain("gate", gate.get("name") or "")
    for kind in ("labels", "annotations"):
        for key in metadata.get(kind) or ():
            yield from _of_domain(kind[:-1], key)
            if kind == "annotations" and key.startswith(f"{_HAMI_ANNOTATIONS}/"):
                yield "HAMi", f"annotation {key}"
    for kind in ("initContainers", "containers"):
        for container in spec.get(kind) or ():
            limits = (container.get("resources") or {}).get("limits") or ()
            for resource in _HAMI_RESOURCES.intersection(limits):
                yield "HAMi", f"resource {resource}"


def _of_domain(kind: str, key: str) -> Iterator[tuple[ManagerName, str]]:
    domain, slash, _ = key.partition("/")
    if slash and domain in _DOMAINS:
        yield _DOMAINS[domain], f"{kind} {key}"

"""Pods in files, also those that a workload would create: one pod and how many of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.cli.templates import Search, Template, is_count
from gpumem_operator.ledger.groups import group_size

_WITH_REPLICAS: Final = frozenset(
    {"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"}
)
WORKLOADS: Final = _WITH_REPLICAS | {"DaemonSet", "Job", "CronJob"}


class WorkloadError(ValueError):
    """A workload of a known kind that the API server would not take; the text begins with the
    path."""


@dataclass(frozen=True)
class Workload:
    """A pod, or the pod of a template with the number of copies that run at once."""

    namespace: str
    name: str
    pod: Mapping[str, Any]
    replicas: int | None
    """None for a pod that stands for itself."""
    warning: str | None = None
    """What is doubtful about the number, where the pod asks for GPUs."""
    known: bool = True
    """Whether the kind is one of Kubernetes' own."""

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Found:
    """What an object holds: its pods, and doubts about what could not be counted."""

    workloads: tuple[Workload, ...] = ()
    warnings: tuple[str, ...] = ()


def find_workloads(raw: Mapping[str, Any]) -> Found:
    """The pods in an object. Raises WorkloadError."""
    kind = raw["kind"]
    if is_foreign(raw) or kind not in WORKLOADS | {"Pod"}:
        return _unknown(raw, kind)
    if kind == "Pod":
        pod = {"metadata": raw.get("metadata") or {}, **_pod_part(raw)}
        return Found((_workload(raw, pod, None),))
    path, spec = _spec_of(raw, kind)
    template = spec.get("template")
    if not isinstance(template, Mapping) or not isinstance(template.get("spec"), Mapping):
        raise WorkloadError(f"{path}.template: {template!r:.60} is not a template of pods")
    replicas = _replicas(kind, spec, path)
    warning = None
    if kind == "DaemonSet":
        warning = "a DaemonSet has one pod for each node; it is counted as 1"
    else:
        warning = _never_whole(kind, template, replicas)
    return Found((_workload(raw, template, replicas, warning=warning),))


def _never_whole(kind: str, template: Mapping[str, Any], replicas: int) -> str | None:
    """That a group is larger than the number of pods that its controller ever has at once."""
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    size = group_size(str(annotations.get(names.GROUP_SIZE_ANNOTATION, "")))
    if size is None or not 0 < replicas < size:
        return None
    field = "replicas" if kind in _WITH_REPLICAS else "parallelism"
    return (
        f"{names.GROUP_SIZE_ANNOTATION} is {size}, and this {kind} has {replicas} at once: where"
        f" its tenant queues, its group is never whole and no pod starts; give {field} {size} or"
        " more, or a smaller group"
    )


def is_foreign(raw: Mapping[str, Any]) -> bool:
    """Whether the object's group is not one of Kubernetes' own: theirs have no dot or end so."""
    group, slash, _ = str(raw.get("apiVersion")).partition("/")
    return bool(slash) and "." in group and not group.endswith(".k8s.io")


def _spec_of(raw: Mapping[str, Any], kind: str) -> tuple[str, Mapping[str, Any]]:
    """The part of the object that has the template, and its path."""
    keys = ("spec", "jobTemplate", "spec") if kind == "CronJob" else ("spec",)
    part = raw
    for depth, key in enumerate(keys, start=1):
        inner = part.get(key)
        if not isinstance(inner, Mapping):
            raise WorkloadError(f"{'.'.join(keys[:depth])}: {inner!r:.60} is not a {kind}'s spec")
        part = inner
    return ".".join(keys), part


def _pod_part(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {key: raw[key] for key in ("spec", "status") if key in raw}


def _replicas(kind: str, spec: Mapping[str, Any], path: str) -> int:
    """How many pods run at once, as the kind's controller would have it."""
    if kind in ("Job", "CronJob"):
        parallelism = _count(spec, "parallelism", 1, path)
        return min(parallelism, _count(spec, "completions", parallelism, path))
    return _count(spec, "replicas", 1, path) if kind in _WITH_REPLICAS else 1


def _count(spec: Mapping[str, Any], field: str, default: int, path: str) -> int:
    value = spec.get(field)
    if value is None:
        return default
    if not is_count(value):
        raise WorkloadError(f"{path}.{field}: {value!r:.60} is not a whole number of pods")
    return value


def _unknown(raw: Mapping[str, Any], kind: str) -> Found:
    search = Search(raw)
    parts = [template.part for template in search.templates]
    workloads = []
    for template in search.templates:
        # Two templates with one name are told apart by the whole path.
        part = template.part if parts.count(template.part) == 1 else ".".join(template.path)
        warning = f"kind {kind} is not known; its template is counted {template.reckoning}"
        workloads.append(_from_template(raw, template, part, warning))
    warnings = tuple(
        f"kind {kind} is not known, and {path} is in no template of pods: it is not counted"
        for path in search.strays
    )
    return Found(tuple(workloads), warnings)


def _from_template(raw: Mapping[str, Any], template: Template, part: str, warning: str) -> Workload:
    return _workload(raw, template.pod, template.count, part=part, warning=warning, known=False)


def _workload(
    raw: Mapping[str, Any],
    template: Mapping[str, Any],
    replicas: int | None,
    *,
    part: str = "",
    warning: str | None = None,
    known: bool = True,
) -> Workload:
    inner = template.get("metadata")
    inner = dict(inner) if isinstance(inner, Mapping) else {}
    inner["namespace"] = namespace_of(raw)
    if (raw.get("metadata") or {}).get("name") or "generateName" not in inner:
        inner["name"] = "-".join(filter(None, (name_of(raw), part.lower())))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": inner, **_pod_part(template)}
    name = "/".join(filter(None, (name_of(raw), part)))
    return Workload(namespace_of(raw), name, pod, replicas, warning, known)


def namespace_of(raw: Mapping[str, Any]) -> str:
    return (raw.get("metadata") or {}).get("namespace") or "default"


def name_of(raw: Mapping[str, Any]) -> str:
    """Its name, or its generateName with a star."""
    metadata = raw.get("metadata") or {}
    return metadata.get("name") or f"{metadata.get('generateName') or ''}*"

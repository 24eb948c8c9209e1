"""Pods in files, also those that a workload would create: one pod and how many of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Workload:
    """A pod, or the pod of a template with the number of copies that run at once."""

    kind: str
    namespace: str
    name: str
    pod: Mapping[str, Any]
    replicas: int | None
    """None for a pod that stands for itself."""
    warning: str | None = None

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"


def workload_of(raw: Mapping[str, Any]) -> Workload | None:
    """The pod in an object, or None where it contains none."""
    kind = raw.get("kind") or ""
    spec = raw.get("spec")
    if kind == "Pod":
        return _workload(raw, kind, {"metadata": raw.get("metadata") or {}, **_pod_part(raw)}, None)
    if not isinstance(spec, Mapping):
        return None
    if kind == "CronJob":
        job = spec.get("jobTemplate")
        spec = job.get("spec") if isinstance(job, Mapping) else None
        if not isinstance(spec, Mapping):
            return None
    template = spec.get("template")
    if not isinstance(template, Mapping) or not isinstance(template.get("spec"), Mapping):
        return None
    replicas, warning = _replicas(kind, spec)
    return _workload(raw, kind, template, replicas, warning)


def _pod_part(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {key: raw[key] for key in ("spec", "status") if key in raw}


def _replicas(kind: str, spec: Mapping[str, Any]) -> tuple[int, str | None]:
    """How many pods run at once, as the kind's controller would have it."""
    if kind in ("Job", "CronJob"):
        parallelism = _count(spec, "parallelism", 1)
        return min(parallelism, _count(spec, "completions", parallelism)), None
    if kind == "DaemonSet":
        return 1, "a DaemonSet has one pod for each node; it is counted as 1"
    if kind in ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"):
        return _count(spec, "replicas", 1), None
    replicas = _count(spec, "replicas", 1)
    return replicas, f"kind {kind} is not known; its template is counted {replicas} x"


def _count(spec: Mapping[str, Any], field: str, default: int) -> int:
    value = spec.get(field)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _workload(
    raw: Mapping[str, Any],
    kind: str,
    template: Mapping[str, Any],
    replicas: int | None,
    warning: str | None = None,
) -> Workload:
    metadata = raw.get("metadata") or {}
    namespace = metadata.get("namespace") or "default"
    name = metadata.get("name") or f"{metadata.get('generateName') or ''}*"
    inner = template.get("metadata")
    inner = dict(inner) if isinstance(inner, Mapping) else {}
    inner["namespace"] = namespace
    if metadata.get("name") or "generateName" not in inner:
        inner["name"] = name
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": inner, **_pod_part(template)}
    return Workload(kind, namespace, name, pod, replicas, warning)

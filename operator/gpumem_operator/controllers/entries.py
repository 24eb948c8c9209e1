"""What the cache keeps of each object: only what something is decided by.

A pod of a real cluster takes some 40 KiB as Python objects. Of ten thousand pods, a tenth of that
is kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gpumem_operator import names
from gpumem_operator.api.gates import is_gated
from gpumem_operator.api.pods import KINDS, is_gpu_pod, is_gpu_resource, is_handled
from gpumem_operator.api.records import PolicyRecord, TenantRecord
from gpumem_operator.api.transitions import condition
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.measured import has_started, measured_pod
from gpumem_operator.enforcement.ending import USUAL_SECONDS
from gpumem_operator.ledger import node_enforcers
from gpumem_operator.ledger.charge import (
    UNKNOWN_RATES,
    Rates,
    charge_pod,
    has_finished,
    is_charged,
    undeclared_in,
)
from gpumem_operator.ledger.groups import Group, group_size
from gpumem_operator.ledger.node_memory import FIELD_MANAGER
from gpumem_operator.reports.measured import MeasuredPod, container_ids, limits_of_pod
from gpumem_operator.reports.report import Limit
from gpumem_operator.scaling.preallocators import growing_frameworks, preallocating_server


@dataclass(frozen=True)
class PolicyEntry:
    """A policy, and the status that is stored with it."""

    record: PolicyRecord
    status: Mapping[str, Any]


@dataclass(frozen=True)
class TenantEntry:
    """A tenant, and the status that is stored with it."""

    record: TenantRecord
    status: Mapping[str, Any]


@dataclass(frozen=True)
class PodEntry:
    """A pod that carries our label; what is derived from it is computed once."""

    pod: Mapping[str, Any]
    """The pod without what nothing is decided by."""
    gpu: bool
    handled: bool
    finished: bool
    charged: bool
    terminating: bool
    server: str | None
    """The inference server in it that preallocates."""
    growing: frozenset[str]
    """Frameworks that are told to take memory as they need it."""
    values: Values = field(repr=False, compare=False)
    gated: bool = False
    """Whether it carries our gate and has not finished."""
    _charges: dict[Rates, int | None] = field(default_factory=dict, repr=False, compare=False)

    @property
    def labels(self) -> Mapping[str, str]:
        labels: Mapping[str, str] = self.pod["metadata"]["labels"]
        return labels

    @property
    def annotations(self) -> Mapping[str, str]:
        annotations: Mapping[str, str] = self.pod["metadata"]["annotations"]
        return annotations

    @cached_property
    def measured(self) -> MeasuredPod:
        """The pod as measurement sees it."""
        return measured_pod(self.pod, self.values)

    @property
    def controller(self) -> Mapping[str, str]:
        """Kind, name and uid of what made it; empty where nothing did."""
        return self.pod["metadata"].get("controller") or {}

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])

    @property
    def node(self) -> str:
        """By name; empty while it has none."""
        return self.pod["spec"].get("nodeName") or ""

    @property
    def started(self) -> bool:
        """As measurement sees it, without all else that it looks at."""
        return has_started(self.pod)

    @cached_property
    def group(self) -> Group | None:
        """The group whose pods go through a quota together; None for a pod on its own."""
        owner = self.controller
        size = group_size(self.annotations.get(names.GROUP_SIZE_ANNOTATION))
        return Group(owner["uid"], size) if owner and size and size > 1 else None

    @property
    def revision(self) -> tuple[str, str] | None:
        """Deployment and ReplicaSet by name; None where no Deployment made the pod."""
        owner = self.controller
        template = self.labels.get("pod-template-hash")
        if not owner or owner["kind"] != "ReplicaSet" or not template:
            return None
        return str(owner["name"]).removesuffix(f"-{template}"), str(owner["name"])

    @cached_property
    def limits(self) -> list[Limit]:
        """What its containers may hold, as senders are told with every answer."""
        return limits_of_pod(self.measured)

    @cached_property
    def undeclared(self) -> tuple[str, ...]:
        """Its containers whose GPUs count whole because they declare nothing."""
        return undeclared_in(self.pod, self.values)

    def charge(self, rates: Rates = UNKNOWN_RATES) -> int | None:
        """What the pod is charged, in bytes; None where that is not known."""
        if rates not in self._charges:
            charge = charge_pod(self.pod, self.values, rates=rates)
            self._charges[rates] = charge.charge_bytes
        return self._charges[rates]


def pod_entry(raw: Mapping[str, Any], values: Values) -> PodEntry:
    """A stored pod whose declarations were verified."""
    finished = has_finished(raw)
    terminating = bool((raw.get("metadata") or {}).get("deletionTimestamp"))
    return PodEntry(
        pod=slim_pod(raw, values.memory_resource),
        gpu=is_gpu_pod(raw, values.memory_resource),
        handled=is_handled(raw),
        finished=finished,
        charged=is_charged(raw),
        terminating=terminating,
        server=preallocating_server(raw),
        growing=growing_frameworks(raw),
        # No scheduler takes a pod that is being deleted, however long a finalizer keeps it.
        gated=not finished and not terminating and is_gated(raw),
        values=values,
    )


def slim_pod(raw: Mapping[str, Any], memory_resource: str) -> dict[str, Any]:
    """The pod with all that charges, labels and admission's traces are read from, and no more."""
    metadata = raw.get("metadata") or {}
    spec = raw.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    slim_spec: dict[str, Any] = {
        kind: [_slim_container(container, memory_resource) for container in spec[kind]]
        for kind in KINDS
        if spec.get(kind)
    }
    for field_name in (
        "schedulingGates",
        "nodeName",
        "shareProcessNamespace",
        "hostPID",
        "priority",
    ):
        if spec.get(field_name):
            slim_spec[field_name] = spec[field_name]
    if (seconds := spec.get("terminationGracePeriodSeconds") or 0) > USUAL_SECONDS:
        slim_spec["terminationGracePeriodSeconds"] = seconds
    status = raw.get("status") or {}
    slim_status: dict[str, Any] = {
        "phase": status.get("phase"),
        "podIP": status.get("podIP"),
        "containerIDs": container_ids(status),
    }
    if overuse := condition(status, names.OVERUSE_CONDITION):
        slim_status["overuse"] = overuse
    return {
        "metadata": {
            "namespace": metadata.get("namespace"),
            "name": metadata.get("name"),
            "uid": metadata.get("uid"),
            "creationTimestamp": metadata.get("creationTimestamp"),
            "labels": metadata.get("labels") or {},
            "annotations": {
                key: annotations[key]
                for key in (
                    names.POLICY_HASH_ANNOTATION,
                    names.GROUP_SIZE_ANNOTATION,
                    names.FENCE_ANNOTATION,
                )
                if key in annotations
            },
            **_ending(metadata),
            "controller": _controller(metadata),
        },
        "spec": slim_spec,
        "status": slim_status,
    }


def _ending(metadata: Mapping[str, Any]) -> dict[str, Any]:
    fields = ("deletionTimestamp", "deletionGracePeriodSeconds")
    return {key: metadata[key] for key in fields if metadata.get(key)}


def _controller(metadata: Mapping[str, Any]) -> Mapping[str, str] | None:
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            return {key: str(owner.get(key)) for key in ("kind", "name", "uid")}
    return None


def _slim_container(container: Mapping[str, Any], memory_resource: str) -> dict[str, Any]:
    limits = (container.get("resources") or {}).get("limits") or {}
    slim: dict[str, Any] = {
        "name": container.get("name"),
        "resources": {
            "limits": {
                key: amount
                for key, amount in limits.items()
                if key == memory_resource or is_gpu_resource(key)
            }
        },
        "env": [entry for entry in container.get("env") or () if _counts(entry.get("name") or "")],
    }
    if policy := container.get("restartPolicy"):
        slim["restartPolicy"] = policy
    return slim


def _counts(variable: str) -> bool:
    return variable.startswith(names.ENV_PREFIX) or variable == names.VISIBLE_DEVICES_ENV


def slim_node(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """A node without its heartbeats, images and addresses."""
    metadata = raw["metadata"]
    status = raw.get("status") or {}
    return {
        "metadata": {
            "name": metadata["name"],
            "uid": metadata["uid"],
            "labels": metadata.get("labels") or {},
            "managedFields": [
                {key: entry.get(key) for key in ("manager", "operation", "fieldsV1")}
                for entry in metadata.get("managedFields") or ()
                if entry.get("manager") in (FIELD_MANAGER, node_enforcers.FIELD_MANAGER)
            ],
        },
        "status": {key: status.get(key) or {} for key in ("capacity", "allocatable")},
    }

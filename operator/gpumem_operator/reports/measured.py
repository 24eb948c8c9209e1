"""A pod as measurement sees it: what its containers may hold, and how it can be measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpumem_operator.api.pods import Source
from gpumem_operator.reports.report import Limit

_STATUSES: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


def bare_id(container_id: str) -> str:
    """A container's id without the runtime before it: not every cgroup path names the runtime."""
    return container_id.rpartition("://")[2]


def container_ids(status: Mapping[str, Any]) -> dict[str, str]:
    """Names of started containers by their bare id, from a raw pod's status."""
    return {
        bare_id(str(one["containerID"])): str(one["name"])
        for kind in _STATUSES
        for one in status.get(kind) or ()
        if one.get("containerID")
    }


@dataclass(frozen=True, slots=True)
class GpuContainer:
    """One container of a pod that asks for GPUs."""

    name: str
    gpus: int
    limit_bytes: int | None
    """Per GPU; None where it may take whole cards."""
    source: Source
    profile_bytes: int | None
    """Memory of its smallest MIG slice; None where one of its GPUs is a card."""
    exclusive: bool
    """Whether all of its GPUs are cards that nobody else gets."""


@dataclass(frozen=True, slots=True)
class MeasuredPod:
    """One GPU pod that has not finished."""

    uid: str
    namespace: str
    name: str
    node: str
    """Empty before it is scheduled."""
    policy: str
    """Name of the policy whose plan it carries; empty without one."""
    containers: tuple[GpuContainer, ...]
    container_names: frozenset[str]
    """Of all containers, ours among them."""
    container_ids: Mapping[str, str]
    """Names of started containers by their bare id, as the pod's status says."""
    started: bool
    """Whether a container of it may run; before that it holds nothing."""
    has_sidecar: bool
    shares_processes: bool
    """Whether its sidecar can see the processes of the other containers."""
    created: str
    """When it was created, RFC 3339 in UTC; empty where that is not known."""

    @property
    def may_report(self) -> bool:
        """Whether it can have a sender of ours: before it is on a node, nothing of it runs."""
        return self.has_sidecar and bool(self.node)

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"


def limits_of_pod(pod: MeasuredPod) -> list[Limit]:
    """What its containers may hold, as senders are told."""
    ids = {name: container_id for container_id, name in pod.container_ids.items()}
    return [
        Limit(
            pod_uid=pod.uid,
            container=container.name,
            container_id=ids.get(container.name),
            limit_bytes=container.limit_bytes,
        )
        for container in pod.containers
        if container.limit_bytes is not None
    ]

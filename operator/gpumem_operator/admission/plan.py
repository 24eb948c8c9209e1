"""What is to be done to one pod, as data. `edit.py` turns it into operations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpumem_operator.api.pods import ContainerFacts
from gpumem_operator.injection.environment import EnvEntry


@dataclass(frozen=True)
class ContainerPlan:
    """Changes to one container of the author."""

    container: ContainerFacts
    env: Sequence[EnvEntry] | None
    """All variables; None where the container has exactly these."""
    mounts: tuple[Mapping[str, Any], ...] = ()
    """Mounts of ours; an author's mount at the same path is replaced."""
    memory_resource_bytes: int | None = None
    """Memory resource to be filled in, in bytes over all GPUs."""
    drops_memory_resource: bool = False
    """Whether what an earlier admission filled in goes, unless it is filled in again."""


@dataclass(frozen=True)
class PodPlan:
    """Everything that one pod gets. What is ours in the pod already is replaced by this."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    containers: tuple[ContainerPlan, ...] = ()
    init_containers: tuple[Mapping[str, Any], ...] = ()
    """Our containers; they come before all others, in this order."""
    volumes: tuple[Mapping[str, Any], ...] = ()
    node_label: str | None = None
    """Label that the pod's node must have; None takes back what an earlier plan required."""
    waits: bool = False
    """Whether it gets our scheduling gate; one that it has goes otherwise."""
    share_process_namespace: bool | None = None
    """False takes back what an earlier admission set; None leaves the author's own alone."""

"""The status of a GPUMemoryPolicy: what the operator sees, written by it alone."""

from typing import Annotated

from pydantic import Field

from gpumem_operator.api.conditions import Conditions
from gpumem_operator.api.model import Model, Name
from gpumem_operator.api.scaling import ScalingTargetStatus


class PodCounts(Model):
    """Pods that the policy decides for."""

    managed: int = 0
    """Pods that carry this policy's plan."""
    outdated: int = 0
    """Managed pods that were admitted before the policy last changed what it says about pods."""
    unmanaged: int = 0
    """GPU pods that the policy selects and that never went through admission."""


Readable = Annotated[str, Field(max_length=32)]


class PolicyAmounts(Model):
    """The byte fields as quantities, for people and for `kubectl get`."""

    declared: Readable | None = None
    """declaredBytes. Absent: not known yet."""
    used: Readable | None = None
    """usedBytes. Absent: nothing is measured."""


class PolicyMemory(Model):
    """GPU memory of the policy's pods."""

    declared_bytes: int | None = None
    """Sum of what its pods declare that have not finished, in bytes: those that wait count, too.
    Absent: not known yet."""
    used_bytes: int | None = None
    """Sum of what was measured, in bytes. Absent: nothing is measured."""
    unknown_pods: int | None = None
    """Pods whose use can not be read at present; they are not in usedBytes."""
    readable: PolicyAmounts | None = None
    """The two byte fields as quantities. Absent: nothing is counted yet."""


class EnforcerCounts(Model):
    """Pods that have started, by what really holds their limit."""

    hardware: int = 0
    """A whole exclusive card or a MIG slice."""
    driver: int = 0
    """The driver's own limit, read back."""
    mps: int = 0
    """The MPS server's limit."""
    framework: int = 0
    """The allocator of the framework, set by the shim."""
    none: int = 0
    """Measured, and nothing holds the limit."""
    unknown: int = 0
    """No fresh evidence."""


class RecentAction(Model):
    """One action of enforcement, or what would have been done."""

    time: Annotated[str, Field(json_schema_extra={"format": "date-time"}, max_length=64)]
    """When."""
    pod: Name
    """Name of the pod."""
    uid: Annotated[str, Field(max_length=64)]
    """UID of the pod."""
    owner_uid: Annotated[str, Field(max_length=64)] | None = None
    """UID of the controller that made the pod. Absent: nobody's."""
    limit_bytes: int | None = None
    """The pod's limit per GPU at that time, in bytes."""
    used_bytes: int | None = None
    """What it held on the GPU in question, in bytes."""
    action: Annotated[str, Field(max_length=32)]
    """Reclaim, Evict, Delete or Kill."""
    result: Annotated[str, Field(max_length=64)]
    """Done, WouldHave, or why not (BlockedByPDB, Busy, Unsupported, ...)."""
    reason: Annotated[str, Field(max_length=1024)] = ""
    """A sentence for people."""


class PolicyStatus(Model):
    """What the operator sees; written by it alone. What is absent is not known yet, never 0."""

    observed_generation: int | None = None
    """Generation of the spec that this status describes."""
    conditions: Conditions = []
    """Ready, Shadowed, MinimumEnforcerUnavailable, MeasurementUnavailable, Overuse,
    ScalingActive."""
    pods: PodCounts | None = None
    """Pods that the policy decides for."""
    memory: PolicyMemory | None = None
    """GPU memory of these pods."""
    enforcers: EnforcerCounts | None = None
    """Pods by what really holds their limit. Absent: not known yet."""
    scaling: Annotated[list[ScalingTargetStatus], Field(max_length=16)] = []
    """One entry for each scaling target."""
    recent_actions: Annotated[list[RecentAction], Field(max_length=20)] = []
    """The latest actions of enforcement, newest first, at most 20."""

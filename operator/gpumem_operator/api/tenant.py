"""GPUMemoryTenant: a set of namespaces with one quota of GPU memory."""

from typing import Annotated, Literal

from pydantic import Field

from gpumem_operator.api.conditions import Conditions
from gpumem_operator.api.model import Bytes, Model, Name, PositiveBytes
from gpumem_operator.api.policy import DefaultPolicySpec
from gpumem_operator.api.selector import LabelSelector


class Quota(Model):
    """How much GPU memory the tenant's pods may ask for together."""

    limit_bytes: Annotated[Bytes, Field(alias="limit")]
    """Most that all pods of the tenant are charged together; with 0 nothing runs. Required."""
    whole_gpu_bytes: Annotated[PositiveBytes, Field(alias="wholeGPU")]
    """What a GPU counts for when nothing says how much of it is taken. Required."""
    exclusive_gpu: Annotated[Literal["Declared", "Whole"], Field(alias="exclusiveGPU")] = "Declared"
    """Whether a card that nobody else can use is charged as declared or as a whole one.
    Default: Declared."""
    on_exceeded: Literal["Queue", "Reject", "Warn"] = "Queue"
    """Pods past the quota wait (Queue), are refused (Reject), or are only reported (Warn). One that
    is larger than the whole quota is refused by Queue, too. Of several tenants of a namespace the
    strictest decides: Reject, Queue, Warn. Default: Queue."""
    hold_after_seconds: Annotated[int, Field(ge=0, le=604_800)] = 600
    """A pod that has waited for so long since its creation holds the room that becomes free for
    itself: pods behind it wait, too. Default: 600."""


class TenantSpec(Model):
    """A set of namespaces and what they may take together."""

    namespace_selector: LabelSelector
    """Which namespaces, by their labels. Required; an empty one selects all."""
    quota: Quota
    """How much GPU memory. Required."""
    default_policy: DefaultPolicySpec | None = None
    """Applies to GPU pods that no policy of their namespace selects. Absent: they are charged and
    nothing else."""


class Reservation(Model):
    """Room kept for one pod until the leader sees it."""

    pod_uid: Annotated[str, Field(alias="podUID", min_length=1, max_length=64)]
    """UID of the pod."""
    namespace: Annotated[str, Field(max_length=63)]
    """Namespace of the pod."""
    name: Name
    """Name of the pod."""
    bytes: int
    """What is kept for it, in bytes."""
    pod_state: Literal["Seen", "Expected"] | None = None
    """Seen: a leader had seen the pod when it was kept, so one that is not there is gone. Expected,
    as where it is absent: a webhook kept it, and the pod may be on its way."""


class QueuedGroup(Model):
    """Pods of one controller that go on together."""

    pods: int
    """How many of them wait. Those that run already are not among them."""
    missing: int
    """How many more there have to be before the group is complete."""
    bytes: int
    """What those that wait ask for together, in bytes."""


class QueuedPod(Model):
    """A pod that waits for room."""

    namespace: Annotated[str, Field(max_length=63)]
    """Namespace of the pod."""
    name: Name
    """Name of the pod."""
    bytes: int
    """What it asks for, in bytes."""
    reason: Annotated[str, Field(max_length=63)] | None = None
    """What it waits for: NoRoom, HeldForAnother (an older pod has waited for holdAfterSeconds),
    GroupIncomplete, LargerThanQuota, TooManyReservations or TenantUnreadable."""
    held_for: Annotated[str, Field(max_length=317)] | None = None
    """NAMESPACE/NAME of the older pod, where it is HeldForAnother."""
    group: QueuedGroup | None = None
    """Those that it goes on with. Absent: it goes on by itself."""


class TopPod(Model):
    """One of the pods that hold most of the quota."""

    namespace: Annotated[str, Field(max_length=63)]
    """Namespace of the pod."""
    name: Name
    """Name of the pod."""
    charged_bytes: int
    """What the tenant pays for it, in bytes."""
    used_bytes: int | None = None
    """What it was measured to hold, in bytes. Absent: unknown."""


Readable = Annotated[str, Field(max_length=32)]


class TenantAmounts(Model):
    """The byte fields of the status as quantities, for people and for `kubectl get`."""

    charged: Readable | None = None
    """chargedBytes. Absent: not counted yet."""
    queued: Readable | None = None
    """queuedBytes. Absent: not counted yet."""
    used: Readable | None = None
    """usedBytes. Absent: nothing is measured."""


class TenantStatus(Model):
    """What the operator sees; written by it alone. What is absent is not known yet, never 0."""

    observed_generation: int | None = None
    """Generation of the spec that this status describes."""
    conditions: Conditions = []
    """Ready, WithinQuota, UsingMoreThanCharged, NamespacesNotIsolated."""
    epoch: int | None = None
    """Raised by each new leader; a writer that reads a higher one than its own stops."""
    charged_bytes: int | None = None
    """What the tenant's pods are charged together, in bytes. Absent: not counted yet."""
    queued_bytes: int | None = None
    """What waiting pods ask for together, in bytes. Absent: not counted yet."""
    used_bytes: int | None = None
    """What the tenant's pods were measured to hold, in bytes. Absent: nothing is measured."""
    held_bytes: int | None = None
    """What pods ask for that have waited for holdAfterSeconds, in bytes: so much of what is left,
    or all of it where less is, goes neither to those behind them nor to pods that can not wait.
    Absent: not counted yet."""
    unknown_pods: int | None = None
    """Pods whose use can not be read at present; they are not in usedBytes. Absent: not counted
    yet."""
    readable: TenantAmounts | None = None
    """The three byte fields as quantities. Absent: nothing is counted yet."""
    reservations: Annotated[
        list[Reservation],
        Field(
            max_length=1000,
            json_schema_extra={
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["podUID"],
            },
        ),
    ] = []
    """Room kept for pods that are not charged yet."""
    queue: Annotated[list[QueuedPod], Field(max_length=50)] = []
    """The first 50 waiting pods, in the order in which they will be let through."""
    top_pods: Annotated[list[TopPod], Field(max_length=10)] = []
    """The ten pods that are charged most."""
    pods_over_charge: Annotated[list[TopPod], Field(max_length=10)] = []
    """Pods that were measured to hold more than they are charged: the ten that are furthest over,
    the furthest first."""

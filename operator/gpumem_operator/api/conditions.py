"""Conditions, their types, and every reason that the operator writes into one."""

from typing import Annotated, Final, Literal

from pydantic import Field

from gpumem_operator.api.model import Model


class Condition(Model):
    """One aspect of an object's state, in Kubernetes' standard form."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    """Name of the aspect."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    reason: Annotated[str, Field(min_length=1, max_length=1024)]
    """One word for programs."""
    message: Annotated[str, Field(max_length=32768)] = ""
    """A sentence for people."""
    last_transition_time: Annotated[
        str, Field(json_schema_extra={"format": "date-time"}, max_length=64)
    ]
    """When status last changed."""
    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """Generation of the spec that the condition describes."""


MOST_CONDITIONS: Final = 16
Conditions = Annotated[
    list[Condition],
    Field(
        max_length=MOST_CONDITIONS,
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    ),
]
"""The list of conditions of a status: one for each type."""


READY: Final = "Ready"
"""Policy and tenant: the spec is read and applied to new pods."""
SHADOWED: Final = "Shadowed"
"""Policy: every pod that it selects is decided by another policy."""
MEASUREMENT_UNAVAILABLE: Final = "MeasurementUnavailable"
"""Policy: use is not measured, or not for all of its pods."""
MINIMUM_ENFORCER_UNAVAILABLE: Final = "MinimumEnforcerUnavailable"
"""Policy: no node can hold limits by what it asks for, so pods with a limit wait."""
OVERUSE: Final = "Overuse"
"""Policy: at least one pod holds more than its limit."""
SCALING_ACTIVE: Final = "ScalingActive"
"""Policy: replicas of its targets follow GPU memory."""
WITHIN_QUOTA: Final = "WithinQuota"
"""Tenant: what its pods are charged fits into its quota."""
USING_MORE_THAN_CHARGED: Final = "UsingMoreThanCharged"
"""Tenant: its pods hold more than they are charged for."""
NAMESPACES_NOT_ISOLATED: Final = "NamespacesNotIsolated"
"""Tenant: in some of its namespaces a container may see GPUs that it does not ask for."""

APPLIED: Final = "Applied"
"""Ready=True: new pods get what the spec says."""
PARTLY_APPLIED: Final = "PartlyApplied"
"""Ready=True: the spec has fields that this version accepts and does not act on as they are."""
INVALID_SPEC: Final = "InvalidSpec"
"""Ready=False: the stored spec can not be read; GPU pods of the namespace are refused."""
SHARED_NAMESPACES: Final = "SharedNamespaces"
"""Ready=True, with namespaces that are in other tenants too, and charged to each."""
NO_NAMESPACES: Final = "NoNamespaces"
"""Ready=True, and no namespace has the labels that the tenant selects: nothing is charged to it."""
UNMANAGED_PODS: Final = "UnmanagedPods"
"""Ready=True, with pods that never went through admission."""
OTHER_POLICY_WINS: Final = "OtherPolicyWins"
"""Shadowed=True: a policy with a higher rank selects the same pods."""
SELECTS_PODS: Final = "NotShadowed"
"""Shadowed=False."""
NOT_MEASURED: Final = "NotMeasured"
"""MeasurementUnavailable=True: some running pods have no sidecar, and their nodes no agent."""
NO_AGENT_ON_NODE: Final = "NoAgentOnNode"
"""MeasurementUnavailable=True: some running pods are left to the agent of their node, and none has
reported."""
WAITING_FOR_REPORTS: Final = "WaitingForReports"
"""MeasurementUnavailable=True: some running pods have not been reported yet."""
NO_ACTIONS: Final = "NoActions"
"""Ready=True of a policy: enforcement.mode is Enforce, and no action is listed."""
UNREADABLE: Final = "Unreadable"
"""MeasurementUnavailable=True: what some running pods hold can not be read."""
MEASURED: Final = "Measured"
"""MeasurementUnavailable=False: what every running pod holds is known."""
NO_PODS: Final = "NoPods"
"""MeasurementUnavailable=False: nothing runs, so nothing is held."""
NO_NODE_CAN: Final = "NoNodeCan"
"""MinimumEnforcerUnavailable=True: none of the GPU nodes can, or there is no GPU node."""
NODES_CAN: Final = "NodesCan"
"""MinimumEnforcerUnavailable=False: at least one node can; the message counts them."""
NOT_REQUIRED: Final = "NotRequired"
"""MinimumEnforcerUnavailable=False: pods may go to any node."""
CHARGES_FIT: Final = "ChargesFit"
"""WithinQuota=True."""
QUOTA_EXCEEDED: Final = "QuotaExceeded"
"""WithinQuota=False: more is charged than the quota, for example since it was lowered."""
CHARGE_UNKNOWN: Final = "ChargeUnknown"
"""WithinQuota=Unknown: the charge of at least one pod can not be read."""
HOLDS_MORE: Final = "HoldsMore"
"""UsingMoreThanCharged=True: at least one pod was measured to hold more than it is charged."""
CHARGES_COVER_USE: Final = "ChargesCoverUse"
"""UsingMoreThanCharged=False: no pod holds more than it is charged."""
USE_UNKNOWN: Final = "UseUnknown"
"""UsingMoreThanCharged=Unknown: no pod is known to, and of some that run it can not be told."""
PODS_OVER_LIMIT: Final = "PodsOverLimit"
"""Overuse=True: some pods are known to hold more than their limit."""
NO_PODS_OVER_LIMIT: Final = "NoPodsOverLimit"
"""Overuse=False: no pod is known to."""
LABEL_MISSING: Final = "LabelMissing"
"""NamespacesNotIsolated=True: some of its namespaces have no label gpumemory.dev/isolate=true."""
ISOLATED: Final = "Isolated"
"""NamespacesNotIsolated=False: each of its namespaces has the label, or it has none yet."""
TARGETS_FOLLOW: Final = "TargetsFollow"
"""ScalingActive=True; with False, the reason is that of the first target that is not scaled."""

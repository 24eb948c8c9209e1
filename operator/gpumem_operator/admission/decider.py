"""Who decides for a pod: a policy of its namespace, or the tenants that the namespace is in."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpumem_operator.admission.selection import policy_for
from gpumem_operator.api.policy import DefaultPolicySpec, MonitoringMode
from gpumem_operator.api.records import Surroundings
from gpumem_operator.api.values import Values


@dataclass(frozen=True)
class Decider:
    """Who decides for the pod: a policy by name, or a tenant's default without one."""

    spec: DefaultPolicySpec | None
    """None in a tenant's namespace where neither applies: the pod is frozen and nothing else."""
    policy_name: str | None
    title: str
    """For people: `policy ml/research`, `defaultPolicy of tenant research`, `tenant research`."""

    @property
    def active(self) -> bool:
        return self.spec is not None and self.spec.mode == "Active"

    def monitoring(self, values: Values) -> MonitoringMode:
        """How use is measured: as the spec says, else as the chart does."""
        if self.spec is None:
            return "None"
        return self.spec.monitoring.mode or values.monitoring.mode


def decide(labels: Mapping[str, str], surroundings: Surroundings) -> Decider | None:
    """A policy of the namespace, else the default policy of a tenant, else the tenant alone.

    `labels` are the pod's.
    """
    policy = policy_for(labels, surroundings.policies)
    if policy is not None and policy.spec is not None:
        return Decider(policy.spec, policy.name, f"policy {policy.namespace}/{policy.name}")
    for tenant in surroundings.tenants:
        if tenant.spec is not None and tenant.spec.default_policy is not None:
            title = f"defaultPolicy of tenant {tenant.name}"
            return Decider(tenant.spec.default_policy, None, title)
    if surroundings.tenants:
        return Decider(None, None, f"tenant {surroundings.tenants[0].name}")
    return None

"""Who decides for a pod: a policy of its namespace, or the tenants that the namespace is in."""

from dataclasses import dataclass

from gpumem_operator.admission.selection import policy_for
from gpumem_operator.api.pods import PodFacts
from gpumem_operator.api.policy import DefaultPolicySpec
from gpumem_operator.api.records import Surroundings


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


def decide(facts: PodFacts, surroundings: Surroundings) -> Decider | None:
    """A policy of the namespace, else the default policy of a tenant, else the tenant alone."""
    policy = policy_for(facts.labels, surroundings.policies)
    if policy is not None and policy.spec is not None:
        return Decider(policy.spec, policy.name, f"policy {policy.namespace}/{policy.name}")
    for tenant in surroundings.tenants:
        if tenant.spec is not None and tenant.spec.default_policy is not None:
            title = f"defaultPolicy of tenant {tenant.name}"
            return Decider(tenant.spec.default_policy, None, title)
    if surroundings.tenants:
        return Decider(None, None, f"tenant {surroundings.tenants[0].name}")
    return None

"""Which policy decides for a pod: highest priority, then oldest, then first by name."""

from collections.abc import Iterable, Mapping

from gpumem_operator.api.records import PolicyRecord


def policy_for(labels: Mapping[str, str], policies: Iterable[PolicyRecord]) -> PolicyRecord | None:
    """The policy that decides for a pod with these labels, or None."""
    return min(candidates(labels, policies), key=rank, default=None)


def candidates(labels: Mapping[str, str], policies: Iterable[PolicyRecord]) -> list[PolicyRecord]:
    """Every readable policy that selects a pod with these labels."""
    return [
        policy
        for policy in policies
        if policy.spec is not None and policy.spec.selector.matches(labels)
    ]


def rank(policy: PolicyRecord) -> tuple[int, bool, str, str]:
    """Sorts the policy that wins first. A policy from a file has no age yet: it is the youngest."""
    priority = policy.spec.priority if policy.spec else 0
    return (-priority, not policy.created, policy.created, policy.name)

"""Which policy decides for a pod: highest priority, then oldest, then first by name."""

import hashlib
import json
from collections.abc import Iterable, Mapping

from gpumem_operator.api.policy import DefaultPolicySpec
from gpumem_operator.api.records import PolicyRecord

_FIELDS_ABOUT_PODS = frozenset(
    {"mode", "limits", "frameworks", "injection", "monitoring", "dataset_cache"}
)
"""Parts of a spec that end up in a pod; the rest may change without making a pod outdated."""


def policy_for(
    labels: Mapping[str, str], policies: Iterable[PolicyRecord]
) -> PolicyRecord | None:
    """The policy that decides for a pod with these labels, or None."""
    return min(candidates(labels, policies), key=rank, default=None)


def candidates(
    labels: Mapping[str, str], policies: Iterable[PolicyRecord]
) -> list[PolicyRecord]:
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


def policy_hash(spec: DefaultPolicySpec) -> str:
    """Fingerprint of what a policy says about pods: two specs with the same one inject the same."""
    told = spec.model_dump(mode="json", by_alias=True, include=set(_FIELDS_ABOUT_PODS))
    text = json.dumps(told, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]

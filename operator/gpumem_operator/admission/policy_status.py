"""What a policy's status says, from the policies and GPU pods of its namespace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpumem_operator.admission import policy_memory
from gpumem_operator.admission.minimum_enforcer import minimum_enforcer_unavailable
from gpumem_operator.admission.policy_memory import PodMemory
from gpumem_operator.admission.selection import policy_for, rank
from gpumem_operator.api import conditions
from gpumem_operator.api.measure import NOT_MEASURED, Measure
from gpumem_operator.api.policy import PolicySpec
from gpumem_operator.api.records import PolicyRecord
from gpumem_operator.api.selector import LabelSelector, Requirement
from gpumem_operator.api.transitions import Finding, renew_conditions
from gpumem_operator.api.values import Values
from gpumem_operator.ledger.node_enforcers import AbleNodes


@dataclass(frozen=True)
class PolicyPod:
    """One GPU pod of the namespace that has not finished."""

    labels: Mapping[str, str]
    handled: bool
    """Admission wrote its plan."""
    policy: str
    """Name of the policy whose plan it carries; empty without one."""
    policy_hash: str
    """What that policy said about pods at the time."""
    declared_bytes: int | None
    """What it asked for; None where it did not say."""
    measure: Measure = NOT_MEASURED


@dataclass(frozen=True)
class PolicySurroundings:
    """Everything that the statuses of one namespace's policies depend on."""

    policies: tuple[PolicyRecord, ...]
    pods: tuple[PolicyPod, ...]
    nodes: AbleNodes | None = None
    """Of the whole cluster; None where they have not been counted yet: nothing is said then."""
    values: Values = field(default_factory=Values)


def policy_status(
    policy: PolicyRecord,
    surroundings: PolicySurroundings,
    *,
    current: Mapping[str, Any],
    now: str,
) -> dict[str, Any]:
    """The fields of the status that follow from pods and policies, as a raw object.

    `current` is the stored status; it is equal in these fields when nothing has to be written. None
    takes a field away. `now` is RFC 3339 in UTC.
    """
    managed = [pod for pod in surroundings.pods if _belongs(pod, policy, surroundings.policies)]
    unmanaged = sum(_slipped(pod, policy, surroundings.policies) for pod in surroundings.pods)
    amounts = [PodMemory(pod.declared_bytes, pod.measure) for pod in managed]
    findings = [
        _ready(policy, unmanaged),
        _shadowed(policy, surroundings),
        policy_memory.measurement(amounts),
    ]
    if (nodes := surroundings.nodes) is not None:
        findings.append(minimum_enforcer_unavailable(policy.spec, nodes, surroundings.values))
    return {
        "observedGeneration": policy.generation,
        "conditions": renew_conditions(
            current.get("conditions") or (), findings, generation=policy.generation, now=now
        ),
        "pods": {
            "managed": len(managed),
            "outdated": _outdated(managed, policy),
            "unmanaged": unmanaged,
        },
        "memory": policy_memory.memory(amounts, current.get("memory") or {}),
        "enforcers": policy_memory.enforcers(amounts),
    }


def _belongs(pod: PolicyPod, policy: PolicyRecord, policies: Sequence[PolicyRecord]) -> bool:
    """A handled pod whose policy is gone belongs to the one that would decide today."""
    if not pod.handled or pod.policy == policy.name:
        return pod.handled
    if any(other.name == pod.policy for other in policies):
        return False
    winner = policy_for(pod.labels, policies)
    return winner is not None and winner.name == policy.name


def _slipped(pod: PolicyPod, policy: PolicyRecord, policies: Sequence[PolicyRecord]) -> bool:
    winner = None if pod.handled else policy_for(pod.labels, policies)
    return winner is not None and winner.name == policy.name


def _outdated(managed: Sequence[PolicyPod], policy: PolicyRecord) -> int:
    # Nothing can be said against a spec that can not be read.
    present = policy.spec.pod_fingerprint if policy.spec else None
    return sum(present is not None and pod.policy_hash != present for pod in managed)


def _ready(policy: PolicyRecord, unmanaged: int) -> Finding:
    if policy.problem is not None:
        return Finding(
            conditions.READY,
            "False",
            conditions.INVALID_SPEC,
            "The stored spec can not be read, so new GPU pods of the namespace are refused"
            f" until it is corrected: {policy.problem}",
        )
    if unmanaged:
        return Finding(
            conditions.READY,
            "True",
            conditions.UNMANAGED_PODS,
            f"New pods get what the spec says. {_count(unmanaged)} that it selects never went"
            f" through admission: create them again to give them their limits.{_read_as(policy)}",
        )
    if policy.read_as:
        what = f"{_what_new_pods_get(policy)}{_read_as(policy)}"
        return Finding(conditions.READY, "True", conditions.PARTLY_APPLIED, what)
    if policy.spec is not None and _enforces_nothing(policy.spec):
        return Finding(
            conditions.READY,
            "True",
            conditions.NO_ACTIONS,
            f"{_what_new_pods_get(policy)} spec.enforcement.mode is Enforce and its list of actions"
            " is empty, so nothing is done about pods over their limit. Next step: leave the list"
            " out (Reclaim, then Evict), or say what is meant with mode Warn.",
        )
    return Finding(conditions.READY, "True", conditions.APPLIED, _what_new_pods_get(policy))


def _enforces_nothing(spec: PolicySpec) -> bool:
    return spec.mode == "Active" and (
        spec.enforcement.mode == "Enforce" and not spec.enforcement.actions
    )


def _read_as(policy: PolicyRecord) -> str:
    return "".join(f" {sentence}" for sentence in policy.read_as)


def _what_new_pods_get(policy: PolicyRecord) -> str:
    if policy.spec is not None and policy.spec.mode == "Observe":
        return "New pods are labelled and nothing is limited or refused: spec.mode is Observe."
    return "New pods get what the spec says."


def _count(pods: int) -> str:
    return "1 GPU pod" if pods == 1 else f"{pods} GPU pods"


def _shadowed(policy: PolicyRecord, surroundings: PolicySurroundings) -> Finding:
    if policy.spec is None:
        return Finding(
            conditions.SHADOWED,
            "Unknown",
            conditions.INVALID_SPEC,
            "The stored spec can not be read.",
        )
    winner = _covering_policy(policy, surroundings) or _winner_of_all_pods(policy, surroundings)
    if winner is None:
        return Finding(
            conditions.SHADOWED,
            "False",
            conditions.SELECTS_PODS,
            "No other policy takes all the pods that this one selects.",
        )
    return Finding(
        conditions.SHADOWED,
        "True",
        conditions.OTHER_POLICY_WINS,
        f"Policy {winner} decides for every pod that this one selects: raise spec.priority,"
        " or narrow the selector of the other.",
    )


def _covering_policy(policy: PolicyRecord, surroundings: PolicySurroundings) -> str | None:
    """The first policy of higher rank whose selector chooses all that ours can ever choose."""
    assert policy.spec is not None
    higher = sorted(
        (
            other
            for other in surroundings.policies
            if other.spec is not None and rank(other) < rank(policy)
        ),
        key=rank,
    )
    for other in higher:
        assert other.spec is not None
        if covers(other.spec.selector, policy.spec.selector):
            return other.name
    return None


def _winner_of_all_pods(policy: PolicyRecord, surroundings: PolicySurroundings) -> str | None:
    """The policies that win the pods which this one selects; None where it wins one itself."""
    assert policy.spec is not None
    winners = set()
    for pod in surroundings.pods:
        if not policy.spec.selector.matches(pod.labels):
            continue
        winner = policy_for(pod.labels, surroundings.policies)
        if winner is None or winner.name == policy.name:
            return None
        winners.add(winner.name)
    return " or ".join(sorted(winners)) or None


def covers(wide: LabelSelector, narrow: LabelSelector) -> bool:
    """Whether `wide` surely chooses everything that `narrow` does: its parts are all in `narrow`.

    False says nothing: selectors can mean the same in different words.
    """
    return wide.match_labels.items() <= narrow.match_labels.items() and all(
        any(_same(part, other) for other in narrow.match_expressions)
        for part in wide.match_expressions
    )


def _same(one: Requirement, other: Requirement) -> bool:
    return (one.key, one.operator, set(one.values)) == (
        other.key,
        other.operator,
        set(other.values),
    )

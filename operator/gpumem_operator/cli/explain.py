"""Why a pod has its limit, charge and use: from the stored pod and what decides about it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gpumem_operator import names
from gpumem_operator.admission.decider import Decider, decide
from gpumem_operator.admission.selection import candidates, rank
from gpumem_operator.api.gates import is_gated
from gpumem_operator.api.managers import managers_of
from gpumem_operator.api.pods import is_gpu_pod, is_handled
from gpumem_operator.api.quantity import show_bytes
from gpumem_operator.api.records import (
    NamespaceRecord,
    PolicyRecord,
    Surroundings,
    TenantRecord,
    tenants_of,
)
from gpumem_operator.api.values import Values
from gpumem_operator.cli import others
from gpumem_operator.cli.charge_words import charged_to
from gpumem_operator.cli.declared_limits import as_believed, cap_of, limits_of
from gpumem_operator.cli.event_lines import event_line
from gpumem_operator.cli.next_steps import next_steps
from gpumem_operator.cli.overuse_lines import overuse_lines
from gpumem_operator.cli.python_path import HINT, may_miss_modules
from gpumem_operator.cli.use_lines import use_lines
from gpumem_operator.cli.waiting import FOREIGN_GATE, WITHOUT_GATE, waiting_lines, waiting_step
from gpumem_operator.ledger.charge import (
    UNKNOWN_RATES,
    charge_pod,
    has_finished,
    is_charged,
    undeclared_in,
)

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Known:
    """What could be read beside the pod; None for what could not."""

    policies: tuple[PolicyRecord, ...]
    namespace: NamespaceRecord
    tenants: tuple[TenantRecord, ...] | None = None
    tenant_statuses: Row = field(default_factory=dict)
    """Raw, by the name of the tenant."""
    usage: Row | None = None
    """The leader's row of this pod; empty where it knows none."""
    others: tuple[Row, ...] = ()
    """What agents see of it although it asks for no GPU, or has ended."""
    actions: tuple[Row, ...] = ()
    """`recentActions` of the policies, about whichever pod, newest first."""
    events: tuple[Row, ...] = ()
    unlabelled: str = ""
    """The label by which its node has to hold limits, where no node has it."""
    now: datetime | None = None
    """None: nothing is said of how long ago something was."""
    values: Values = field(default_factory=Values)


def explain_pod(pod: Row, known: Known, *, about_nodes: Sequence[str] = ()) -> list[str]:
    """Lines for people, the first is a title; `about_nodes` are among them."""
    title = _title(pod)
    pod = as_believed(pod)
    if not is_gpu_pod(pod, known.values.memory_resource):
        return [title, *_unasked(pod, known)]
    lines = [title, *_policy(pod, known), *_managers(pod, known), *_gate(pod, known)]
    lines += [
        *_containers(pod, known),
        *_charge(pod, known),
        *use_lines(pod, known.usage, known.others),
    ]
    lines += overuse_lines(pod, _decider(pod, known), known.usage, known.actions)
    lines += [*about_nodes, *_events(known)]
    lines += [f"  next step: {step}" for step in steps_for(pod, known)]
    return lines + ([f"  hint: {HINT}"] if may_miss_modules(pod) else [])


def _title(pod: Row) -> str:
    metadata, phase = pod["metadata"], (pod.get("status") or {}).get("phase")
    node = (pod.get("spec") or {}).get("nodeName")
    where = f" on {node}" if node else ""
    since = metadata.get("deletionTimestamp")
    state = f"Terminating, to be gone by {since}; {phase}" if since else phase
    return f"pod {metadata['namespace']}/{metadata['name']} ({state}{where})"


def _decider(pod: Row, known: Known) -> Decider | None:
    """Who decides about the pod today, by what can be read."""
    if _is_left_out(known):
        return None
    tenants = tenants_of(known.namespace, known.tenants or ())
    labels = pod["metadata"].get("labels") or {}
    return decide(labels, Surroundings(known.namespace, known.policies, tenants))


def _unasked(pod: Row, known: Known) -> Iterator[str]:
    if is_gated(pod):
        yield "  It asks for no GPU, so nobody is charged for it."
        yield f"  {FOREIGN_GATE}"
    elif not known.others:
        yield "  It asks for no GPU, so nothing here concerns it."
    if known.others:
        yield (
            "  It asks for no GPU and holds memory of one: nothing limits it, nobody is charged."
        )
        yield from others.lines(pod, known.others)
    yield from (f"  next step: {step}" for step in steps_for(pod, known))


def steps_for(pod: Row, known: Known) -> list[str]:
    """What a person can do about the pod."""
    pod = as_believed(pod)
    if not is_gpu_pod(pod, known.values.memory_resource):
        return [
            *([WITHOUT_GATE] if is_gated(pod) else []),
            *([others.STEP] if known.others else []),
        ]
    return next_steps(
        pod,
        outdated=_is_outdated(pod, known),
        usage=known.usage,
        events=known.events,
        decider=_decider(pod, known),
        at_gate=waiting_step(pod, _tenants(known), known.tenant_statuses, known.events),
        unlabelled=known.unlabelled,
    )


def _tenants(known: Known) -> tuple[TenantRecord, ...] | None:
    """Those of the pod's namespace; None where they may not be read."""
    return None if known.tenants is None else tenants_of(known.namespace, known.tenants)


def _policy(pod: Row, known: Known) -> Iterator[str]:
    labels = pod["metadata"].get("labels") or {}
    carried = labels.get(names.POLICY_LABEL)
    chosen = sorted(candidates(labels, known.policies), key=rank)
    if not is_handled(pod):
        yield f"  not handled: {_why_not_handled(labels, chosen, known)}"
        return
    if carried is None:
        yield f"  policy: {_without_policy(pod, known)}"
        return
    if carried not in {policy.name for policy in known.policies}:
        yield f"  policy: {carried}, which is gone; its plan stays until the pod is created again"
    elif chosen and chosen[0].name == carried:
        yield f"  policy: {carried}, {_why_it_wins(chosen)}"
    else:
        now = f"{chosen[0].name} would win today" if chosen else "none selects it today"
        yield f"  policy: {carried}, as it was when the pod was created; {now}"
    winner = next((policy for policy in known.policies if policy.name == carried), None)
    if winner and winner.spec and winner.spec.mode == "Observe":
        yield "  mode Observe: nothing is limited or refused for the policy's sake"
    if summary := (pod["metadata"].get("annotations") or {}).get(names.SUMMARY_ANNOTATION):
        yield f"  at admission: {summary}"
    if _is_outdated(pod, known):
        yield "  outdated: the policy changed since the pod was created"


def _without_policy(pod: Row, known: Known) -> str:
    """Who decides about a pod that admission handled for its tenant alone."""
    if known.tenants is None:
        return "none of its namespace; whether a tenant's defaultPolicy decides may not be read"
    decider = _decider(pod, known)
    if decider is None:
        return "none; admission handled it for a tenant that its namespace is in no longer"
    if decider.policy_name is not None:
        return f"none, as it was when the pod was created; {decider.policy_name} would win today"
    if decider.spec is None:
        return f"none, and {decider.title} has no defaultPolicy: it is charged, and no more is done"
    observed = "; in mode Observe, so nothing is limited" if decider.spec.mode == "Observe" else ""
    return f"{decider.title}, since no policy of its namespace selects it{observed}"


def _managers(pod: Row, known: Known) -> Iterator[str]:
    for manager in managers_of(pod):
        left = manager.name in known.values.foreign_managers
        what = "; shim, framework variables and sidecar are left to it" if left else ""
        yield f"  also managed by {manager}{what}"


def _is_outdated(pod: Row, known: Known) -> bool:
    metadata = pod["metadata"]
    carried = (metadata.get("labels") or {}).get(names.POLICY_LABEL)
    stored = (metadata.get("annotations") or {}).get(names.POLICY_HASH_ANNOTATION)
    policy = next((one for one in known.policies if one.name == carried), None)
    return bool(policy and policy.spec and stored not in (None, policy.spec.pod_fingerprint))


def _is_left_out(known: Known) -> bool:
    """Whether admission is kept away from the pod's namespace."""
    space = known.namespace
    labelled = space.labels.get(names.IGNORE_LABEL) == "true"
    return labelled or space.name in known.values.ignored_namespaces


def _why_it_wins(chosen: list[PolicyRecord]) -> str:
    first = chosen[0]
    if len(chosen) == 1:
        return "the only one that selects it"
    second = chosen[1]
    return f"before {second.name}: {_advantage(first, second)}"


def _advantage(first: PolicyRecord, second: PolicyRecord) -> str:
    priorities = [policy.spec.priority if policy.spec else 0 for policy in (first, second)]
    if priorities[0] != priorities[1]:
        return f"priority {priorities[0]} is above {priorities[1]}"
    if first.created != second.created:
        return f"of the same priority, and older ({first.created})"
    return "of the same priority and age, and first by name"


def _why_not_handled(labels: Mapping[str, str], chosen: list[PolicyRecord], known: Known) -> str:
    space = known.namespace
    if space.labels.get(names.IGNORE_LABEL) == "true":
        return f"namespace {space.name} is labelled {names.IGNORE_LABEL}=true"
    if space.name in known.values.ignored_namespaces:
        return f"namespace {space.name} is left out of admission"
    if chosen:
        return (
            f"policy {chosen[0].name} selects it, but it never went through admission, so it has"
            " no limit"
        )
    if known.tenants and tenants_of(space, known.tenants):
        return "its namespace has a tenant, but it never went through admission"
    if labels.get(names.MANAGED_LABEL) == "false":
        return "it never went through admission, and nothing selects it today"
    return "no policy selects it, and its namespace is in no tenant that can be read"


def _gate(pod: Row, known: Known) -> Iterator[str]:
    if is_gated(pod):
        tenants = tenants_of(known.namespace, known.tenants or ())
        undeclared = undeclared_in(pod, known.values)
        yield from waiting_lines(pod, tenants, known.tenant_statuses, undeclared=undeclared)


def _containers(pod: Row, known: Known) -> Iterator[str]:
    for row in limits_of(pod, known.values):
        gpus = "1 GPU" if row["gpus"] == 1 else f"{row['gpus']} GPUs"
        title, source = f"  container {row['name']}", row["limitSource"]
        if row["limitBytes"] is None:
            yield f"{title}: no limit on {gpus} ({source})"
            continue
        yield f"{title}: limit {show_bytes(row['limitBytes'])} per GPU on {gpus} ({source})"
        if row["reserveBytes"] is not None:
            yield f"    cap of each process: {cap_of(row)}"


def _charge(pod: Row, known: Known) -> Iterator[str]:
    declared = charge_pod(pod, known.values, rates=UNKNOWN_RATES).charge_bytes
    yield f"  declared: {'nothing' if declared is None else show_bytes(declared)}"
    if known.tenants is None:
        yield "  charged: not known, tenants may not be read"
        return
    if not is_charged(pod):
        yield f"  charged: nothing, {'it has ended' if has_finished(pod) else 'it waits'}"
        return
    for tenant in tenants_of(known.namespace, known.tenants):
        if tenant.spec is not None:
            status = known.tenant_statuses.get(tenant.name) or {}
            words = charged_to(pod, tenant.name, tenant.spec.quota, known.values, status)
            yield f"  charged: {words}"


def _events(known: Known) -> Iterator[str]:
    for event in known.events:
        yield f"  {event_line(event, known.now)}"

"""One pod in, one verdict out: the whole of admission, without any I/O."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gpumem_operator import names
from gpumem_operator.admission import ephemeral, marks, quota
from gpumem_operator.admission.annotations import group_of_nobody, unknown_annotations
from gpumem_operator.admission.authored import authored
from gpumem_operator.admission.decider import Decider, decide
from gpumem_operator.admission.declaration import Declarations
from gpumem_operator.admission.declared import declare_under
from gpumem_operator.admission.edit import operations
from gpumem_operator.admission.enforcer_needs import doubts
from gpumem_operator.admission.hindsight import look_back
from gpumem_operator.admission.planner import make_plan, plan_without_gpus
from gpumem_operator.admission.verdict import Verdict, refusal, shown_warnings
from gpumem_operator.api.count import named
from gpumem_operator.api.managers import managers_of
from gpumem_operator.api.pods import PodFacts, gather, is_gpu_pod, is_handled
from gpumem_operator.api.records import Surroundings
from gpumem_operator.api.seal import Seal
from gpumem_operator.api.values import Values
from gpumem_operator.api.violation import Violation
from gpumem_operator.ledger.node_enforcers import NodeSummary

UNTOUCHED = Verdict()


def review_pod(
    pod: Mapping[str, Any],
    surroundings: Surroundings,
    values: Values,
    *,
    seal: Seal | None = None,
    nodes: NodeSummary | None = None,
) -> Verdict:
    """The verdict on a pod that is being created in the namespace of `surroundings`.

    Without a `seal` the plan is shown as it would be, and would not be believed in a cluster.
    `nodes` is what is known of the cluster's; it only adds to warnings.
    """
    if not is_gpu_pod(pod, values.memory_resource):
        return UNTOUCHED
    read = gather(pod, values.memory_resource, namespace=surroundings.namespace.name)
    facts = authored(read, pod, values.memory_resource)
    if managers := managers_of(pod):
        facts = replace(facts, managers=managers)
    unreadable = _unreadable(surroundings)
    if unreadable:
        return refusal(facts.title, unreadable, next_step="correct the object", code=500)
    decider = decide(facts.labels, surroundings)
    if decider is None:
        return UNTOUCHED
    declarations = declare_under(decider, facts, values)
    if not declarations.rows and not declarations.violations:
        # It names a GPU resource and asks for none of it (`nvidia.com/gpu: 0`).
        plan = plan_without_gpus(facts, hides_devices=bool(surroundings.tenants))
        return Verdict(operations=tuple(operations(pod, plan, values.memory_resource)))
    return _review(
        pod,
        facts,
        declarations,
        surroundings,
        decider=decider,
        values=values,
        seal=seal,
        nodes=nodes,
    )


def review_ephemeral_containers(
    pod: Mapping[str, Any], old_pod: Mapping[str, Any], surroundings: Surroundings, values: Values
) -> Verdict:
    """The verdict on ephemeral containers that are being added to a stored pod."""
    if not is_handled(old_pod) and not surroundings.tenants:
        return UNTOUCHED
    facts = gather(pod, values.memory_resource, namespace=surroundings.namespace.name)
    # Policies say nothing about ephemeral containers: one that can not be read does not matter.
    unreadable = _unreadable(replace(surroundings, policies=()))
    if unreadable:
        return refusal(facts.title, unreadable, next_step="correct the object", code=500)
    added = ephemeral.added(facts, old_pod)
    violations = list(_devices_in_tenants(facts, surroundings, only=frozenset(added)))
    if violations:
        return refusal(facts.title, violations, next_step=_NO_DEVICES)
    hides_devices = bool(surroundings.tenants)
    return Verdict(operations=tuple(ephemeral.operations(added, hides_devices=hides_devices)))


_NO_DEVICES = "NVIDIA_VISIBLE_DEVICES may only be void or none here"


def _review(
    pod: Mapping[str, Any],
    facts: PodFacts,
    declarations: Declarations,
    surroundings: Surroundings,
    *,
    decider: Decider,
    values: Values,
    seal: Seal | None,
    nodes: NodeSummary | None,
) -> Verdict:
    hindsight = look_back(facts, decider, values)
    planned = make_plan(
        facts,
        declarations,
        decider=decider,
        values=values,
        would=hindsight,
        hides_devices=bool(surroundings.tenants),
        seal=seal,
        cards=nodes.cards if nodes else {},
    )
    devices = tuple(_devices_in_tenants(facts, surroundings))
    alone = tuple(group_of_nobody(pod, facts))
    quotas = quota.check(
        facts, declarations, surroundings.tenants, values=values, grouped=not alone
    )
    refused = [*_reserved_names(facts), *devices, *quotas.violations]
    if surroundings.tenants:
        refused.extend(quota.faulty_group(facts))
        refused.extend(quota.group_that_can_not_wait(facts, surroundings.tenants))
    # Without a tenant nobody but the policy minds a faulty declaration, and it may only observe.
    if decider.active or surroundings.tenants:
        refused.extend(declarations.violations)
    if decider.active:
        refused.extend([*declarations.out_of_bounds, *planned.violations])
    if refused:
        return refusal(facts.title, refused, next_step=f"{decider.title} decides for this pod")
    warnings = [*unknown_annotations(facts), *quotas.warnings, *_unlimited(declarations, decider)]
    warnings.extend(alone)
    warnings.extend(_uncounted(declarations))
    if hindsight is not None:
        warnings.extend(f"would be refused: {violation}" for violation in hindsight.violations)
    warnings.extend(doubts(planned.plan, declarations, decider=decider, nodes=nodes))
    warnings.extend(planned.warnings)
    plan = planned.plan
    if surroundings.tenants:
        reserves = quota.reserves(facts, surroundings.tenants)
        plan = replace(
            plan,
            waits=quota.waits(facts, surroundings.tenants),
            labels={**plan.labels, **marks.reservation(reserves=reserves)},
        )
    return Verdict(
        operations=tuple(operations(pod, plan, values.memory_resource)),
        warnings=shown_warnings(warnings),
    )


def _unreadable(surroundings: Surroundings) -> list[Violation]:
    """A policy that can not be read might be the one that decides; so nothing is let through."""
    records = [
        *((f"policy {p.namespace}/{p.name}", p.problem) for p in surroundings.policies),
        *((f"tenant {t.name}", t.problem) for t in surroundings.tenants),
    ]
    return [Violation(title, f"can not be read: {text}") for title, text in records if text]


def _reserved_names(facts: PodFacts) -> Iterable[Violation]:
    """What stands where ours stand and asks for nothing was taken for ours before."""
    for container in facts.containers:
        if container.name in names.OUR_CONTAINERS and container.kind != "ephemeralContainers":
            text = "the name is kept for a container of the GPU memory operator: choose another one"
            yield Violation(f"{container.path}.name", text)


def _devices_in_tenants(
    facts: PodFacts, surroundings: Surroundings, *, only: frozenset[str] | None = None
) -> Iterable[Violation]:
    if not surroundings.tenants:
        return
    for container in facts.containers:
        if container.sees_devices and (only is None or container.name in only):
            yield Violation(
                f"{container.path}.env[{names.VISIBLE_DEVICES_ENV}]",
                "gives the container GPUs that it did not ask for, in a namespace of tenant "
                f"{surroundings.tenants[0].name}: remove the variable, and ask for GPUs in"
                " resources.limits",
            )


def _unlimited(declarations: Declarations, decider: Decider) -> list[str]:
    """A policy with a largest limit says nothing about containers that declare none: tell it."""
    if not decider.active or decider.spec is None or decider.spec.limits.max_bytes is None:
        return []
    free = [row.container.name for row in declarations.rows if row.source == "WholeGPU"]
    if not free:
        return []
    return [
        f"{decider.title} has spec.limits.max but no default, and {named(free)} "
        f"{'declares' if len(free) == 1 else 'declare'} nothing: whole cards may be taken"
    ]


def _uncounted(declarations: Declarations) -> list[str]:
    blind = [row.container.name for row in declarations.rows if not row.container.gpu_count]
    if not blind:
        return []
    return [
        f"{named(blind)}: {names.VISIBLE_DEVICES_ENV} gives GPUs that are not asked for; they are"
        " not counted"
    ]

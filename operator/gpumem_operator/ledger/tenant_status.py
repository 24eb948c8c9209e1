"""What a tenant's status says, from the charges of the pods in its namespaces."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from gpumem_operator.api import conditions
from gpumem_operator.api.measure import settled, used_of
from gpumem_operator.api.quantity import add_bytes, show_bytes
from gpumem_operator.api.records import TenantRecord
from gpumem_operator.api.transitions import Finding, renew_conditions
from gpumem_operator.ledger.charged_pod import ChargedPod, largest_first
from gpumem_operator.ledger.not_isolated import namespaces_not_isolated
from gpumem_operator.ledger.use_above_charge import pods_over_charge, using_more_than_charged

TOP_PODS: Final = 10
MOST_SHARED_NAMED: Final = 3

Shared = Mapping[str, tuple[str, ...]]
"""Namespaces that other tenants have too, with the names of these."""
_NOTHING_SHARED: Final[Shared] = MappingProxyType({})


def tenant_status(
    tenant: TenantRecord,
    pods: tuple[ChargedPod, ...],
    *,
    current: Mapping[str, Any],
    now: str,
    shared: Shared = _NOTHING_SHARED,
    not_isolated: tuple[str, ...] = (),
    namespaces: int | None = None,
) -> dict[str, Any]:
    """The fields of the status that follow from charges, as a raw object.

    `not_isolated` are the tenant's namespaces in which GPUs can be taken without asking for them,
    `namespaces` is the number of all of them, None where it is not known.
    `current` is the stored status; it is equal in these fields when nothing has to be written. None
    takes a field away. `now` is RFC 3339 in UTC.
    """
    unreadable = tenant.spec is None
    charged = None if unreadable else add_bytes(pod.charged_bytes or 0 for pod in pods)
    over = [] if unreadable else pods_over_charge(pods, current.get("podsOverCharge") or ())
    findings = [
        _ready(tenant, shared, namespaces),
        _within_quota(tenant, pods),
        _use_covered(tenant, pods, over),
        _isolation(tenant, not_isolated),
    ]
    return {
        "observedGeneration": tenant.generation,
        "conditions": renew_conditions(
            current.get("conditions") or (), findings, generation=tenant.generation, now=now
        ),
        "chargedBytes": charged,
        **_use(pods, charged, current),
        "topPods": [] if unreadable else top_pods(pods, current.get("topPods") or ()),
        "podsOverCharge": over,
    }


def _use(
    pods: tuple[ChargedPod, ...], charged: int | None, current: Mapping[str, Any]
) -> dict[str, Any]:
    if charged is None:
        return {"usedBytes": None, "unknownPods": None, "readable": None}
    queued = current.get("queuedBytes")
    used = settled(used_of([pod.measure for pod in pods]), current.get("usedBytes"))
    return {
        "usedBytes": used,
        "unknownPods": sum(pod.measure.missing for pod in pods),
        "readable": {
            "charged": show_bytes(charged),
            "used": None if used is None else show_bytes(used),
            **({} if queued is None else {"queued": show_bytes(queued)}),
        },
    }


def top_pods(
    pods: tuple[ChargedPod, ...], stored: Iterable[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """The pods that are charged most, then by namespace and name; `stored` is the present list."""
    before = {(row.get("namespace"), row.get("name")): row.get("usedBytes") for row in stored}
    largest = largest_first(pod for pod in pods if pod.charged_bytes)
    rows = []
    for pod in largest[:TOP_PODS]:
        row = {"namespace": pod.namespace, "name": pod.name, "chargedBytes": pod.charged_bytes}
        used = settled(pod.measure.used_bytes, before.get((pod.namespace, pod.name)))
        rows.append(row if used is None else {**row, "usedBytes": used})
    return rows


def _ready(tenant: TenantRecord, shared: Shared, namespaces: int | None) -> Finding:
    if tenant.problem is not None:
        return Finding(
            conditions.READY,
            "False",
            conditions.INVALID_SPEC,
            "The stored spec can not be read, so it is not known which namespaces it means:"
            f" {tenant.problem}",
        )
    if namespaces == 0:
        return Finding(
            conditions.READY,
            "True",
            conditions.NO_NAMESPACES,
            "No namespace has the labels that spec.namespaceSelector asks for, so no pod is charged"
            " to it or held to its quota. Next step: label a namespace so, or correct the"
            " selector.",
        )
    return Finding(
        conditions.READY,
        "True",
        conditions.SHARED_NAMESPACES if shared else conditions.APPLIED,
        f"Pods of its namespaces are charged to it. {_WHAT_IS_DONE[_mode(tenant)]}"
        f"{_what_is_shared(shared)}{''.join(f' {sentence}' for sentence in tenant.read_as)}",
    )


_WHAT_IS_DONE: Final = {
    "Queue": "Pods for which there is no room wait.",
    "Reject": "Pods for which there is no room are refused.",
    "Warn": "Pods past the quota are let in, and reported.",
}


def _mode(tenant: TenantRecord) -> str:
    return "Queue" if tenant.spec is None else tenant.spec.quota.on_exceeded


def _what_is_shared(shared: Shared) -> str:
    if not shared:
        return ""
    named = "; ".join(
        f"{namespace} is also in {', '.join(others[:MOST_SHARED_NAMED])}"
        f"{_more(len(others) - MOST_SHARED_NAMED)}"
        for namespace, others in sorted(shared.items())[:MOST_SHARED_NAMED]
    )
    return (
        f" Pods of {len(shared)} of its namespaces are charged to other tenants as well:"
        f" {named}{_more(len(shared) - MOST_SHARED_NAMED)}."
    )


def _more(number: int) -> str:
    return f" and {number} more" if number > 0 else ""


def _use_covered(
    tenant: TenantRecord, pods: tuple[ChargedPod, ...], over: list[dict[str, Any]]
) -> Finding:
    if tenant.spec is None:
        return _unreadable(conditions.USING_MORE_THAN_CHARGED)
    return using_more_than_charged(pods, over)


def _isolation(tenant: TenantRecord, not_isolated: tuple[str, ...]) -> Finding:
    if tenant.spec is None:
        return _unreadable(conditions.NAMESPACES_NOT_ISOLATED)
    return namespaces_not_isolated(not_isolated)


def _unreadable(kind: str) -> Finding:
    return Finding(kind, "Unknown", conditions.INVALID_SPEC, "The stored spec can not be read.")


def _past_it(on_exceeded: str) -> str:
    """What its people have to know: pods go on, and what new ones meet."""
    if on_exceeded == "Warn":
        return " spec.quota.onExceeded is Warn: pods are let in all the same."
    # Pods that were there before the quota, or it was lowered.
    new = "wait" if on_exceeded == "Queue" else "are refused"
    return f" Nothing is evicted; new pods {new} until enough of these have ended."


def _within_quota(tenant: TenantRecord, pods: tuple[ChargedPod, ...]) -> Finding:
    if tenant.spec is None:
        return _unreadable(conditions.WITHIN_QUOTA)
    limit = tenant.spec.quota.limit_bytes
    charged = add_bytes(pod.charged_bytes or 0 for pod in pods)
    if charged > limit:
        return Finding(
            conditions.WITHIN_QUOTA,
            "False",
            conditions.QUOTA_EXCEEDED,
            f"{show_bytes(charged)} is charged and the quota is {show_bytes(limit)}:"
            f" {show_bytes(charged - limit)} too much.{_past_it(tenant.spec.quota.on_exceeded)}",
        )
    unknown = [f"{pod.namespace}/{pod.name}" for pod in pods if pod.charged_bytes is None]
    if unknown:
        return Finding(
            conditions.WITHIN_QUOTA,
            "Unknown",
            conditions.CHARGE_UNKNOWN,
            f"At least {show_bytes(charged)} of {show_bytes(limit)} is charged; what"
            f" {len(unknown)} pods take can not be read, first {min(unknown)}.",
        )
    return Finding(
        conditions.WITHIN_QUOTA,
        "True",
        conditions.CHARGES_FIT,
        f"{show_bytes(charged)} of {show_bytes(limit)} is charged.",
    )

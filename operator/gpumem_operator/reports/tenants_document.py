"""Tenants as JSON for `kubectl gpumem tenants`. Amounts are bytes, null is unknown."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gpumem_operator.api.measure import used_of
from gpumem_operator.api.quantity import add_bytes
from gpumem_operator.reports.document import DOCUMENT_VERSION, pod_row
from gpumem_operator.reports.snapshot import PodView, Snapshot
from gpumem_operator.reports.tenant_view import TenantView

TOP_PODS: Final = 10


def tenants_document(snapshot: Snapshot, *, now: str, tenant: str = "") -> dict[str, Any]:
    """Every tenant with its sums, or one, with all of its pods. `now` is RFC 3339 in UTC."""
    by_tenant: defaultdict[str, list[PodView]] = defaultdict(list)
    for view in snapshot.pods.values():
        for name in view.charges:
            by_tenant[name].append(view)
    document: dict[str, Any] = {
        "schemaVersion": DOCUMENT_VERSION,
        "time": now,
        "tenants": [
            tenant_row(one, by_tenant[one.name])
            for one in snapshot.tenants
            if tenant in ("", one.name)
        ],
    }
    if tenant:
        pods = sorted(by_tenant[tenant], key=lambda view: _largest_first(view, tenant))
        document["pods"] = [pod_row(view) for view in pods]
    return document


def tenant_row(tenant: TenantView, pods: Sequence[PodView]) -> dict[str, Any]:
    """One tenant with the sums over its pods; sums are null where its spec can not be read."""
    sums = _NO_SUMS if tenant.limit_bytes is None else _sums(tenant.name, pods)
    return {**described(tenant), **sums}


def described(tenant: TenantView) -> dict[str, Any]:
    """The part of the row that has nothing to do with its pods."""
    return {
        "name": tenant.name,
        "namespaces": None if tenant.namespaces is None else list(tenant.namespaces),
        "shared": {namespace: list(others) for namespace, others in tenant.shared.items()},
        "limitBytes": tenant.limit_bytes,
        "wholeGPUBytes": tenant.whole_gpu_bytes,
        "onExceeded": tenant.on_exceeded,
        "heldBytes": tenant.held_bytes,
        "conditions": [_condition(one) for one in tenant.conditions],
    }


def _sums(tenant: str, pods: Sequence[PodView]) -> dict[str, Any]:
    queued = [view.queued[tenant] for view in pods if tenant in view.queued]
    charged = [view for view in pods if tenant not in view.queued]
    measures = [view.measure for view in charged]
    largest = sorted(charged, key=lambda view: _largest_first(view, tenant))[:TOP_PODS]
    return {
        "chargedPods": len(charged),
        "chargedBytes": add_bytes(view.charges[tenant] or 0 for view in charged),
        "unknownCharges": sum(view.charges[tenant] is None for view in charged),
        "usedBytes": used_of(measures),
        "unknownPods": sum(measure.missing for measure in measures),
        "queuedPods": len(queued),
        "queuedBytes": add_bytes(amount or 0 for amount in queued),
        "topPods": [_top_pod(view, tenant) for view in largest],
    }


_NO_SUMS: Final[Mapping[str, Any]] = {
    "chargedPods": None,
    "chargedBytes": None,
    "unknownCharges": None,
    "usedBytes": None,
    "unknownPods": None,
    "queuedPods": None,
    "queuedBytes": None,
    "topPods": [],
}


def _largest_first(view: PodView, tenant: str) -> tuple[int, str, str]:
    amount = view.queued.get(tenant, view.charges[tenant])
    return (-(amount or 0), view.use.pod.namespace, view.use.pod.name)


def _top_pod(view: PodView, tenant: str) -> dict[str, Any]:
    return {
        "namespace": view.use.pod.namespace,
        "name": view.use.pod.name,
        "chargedBytes": view.charges[tenant],
        "usedBytes": view.used_bytes,
    }


def _condition(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {key: raw.get(key) for key in ("type", "status", "reason", "message")}

"""Tenants as their stored objects tell of them, in the form in which the leader does. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from gpumem_operator.api.memberships import memberships
from gpumem_operator.api.records import namespace_record, tenant_record
from gpumem_operator.reports.tenant_view import tenant_view
from gpumem_operator.reports.tenants_document import described

Row = Mapping[str, Any]


def stored_document(
    tenants: Iterable[Row], namespaces: Iterable[Row] | None, *, unasked: str, tenant: str = ""
) -> dict[str, Any]:
    """Rows of raw tenants; `namespaces` are None where they may not be read.

    `unasked` is why the leader did not tell, and stands for what only it would know.
    With the name of a tenant, its row alone, and the pods that its status names.
    """
    every = sorted(tenants, key=lambda raw: str(raw["metadata"]["name"]))
    records = [tenant_record(raw) for raw in every]
    places = None
    if namespaces is not None:
        places = memberships(map(namespace_record, namespaces), records)
    rows = []
    for raw, record in zip(every, records, strict=True):
        status = raw.get("status") or {}
        rows.append({**described(tenant_view(record, places, status=status)), **_told(status)})
    chosen = [row for row in rows if tenant in ("", row["name"])]
    document: dict[str, Any] = {"tenants": chosen}
    if tenant:
        document["pods"] = [_pod(pod, tenant, unasked) for row in chosen for pod in row["topPods"]]
    return document


def _told(status: Row) -> dict[str, Any]:
    """What the leader last wrote; the numbers of pods are not among it."""
    queue = status.get("queue")
    return {
        "chargedPods": None,
        "chargedBytes": status.get("chargedBytes"),
        "unknownCharges": None,
        "usedBytes": status.get("usedBytes"),
        "unknownPods": status.get("unknownPods"),
        "queuedPods": None if queue is None else len(queue),
        "queuedBytes": status.get("queuedBytes"),
        "topPods": status.get("topPods") or [],
    }


def _pod(row: Row, tenant: str, unasked: str) -> dict[str, Any]:
    used = row.get("usedBytes")
    return {
        "namespace": row["namespace"],
        "name": row["name"],
        "charges": [{"tenant": tenant, "chargedBytes": row.get("chargedBytes")}],
        "usedBytes": used,
        "unknown": unasked if used is None else None,
    }

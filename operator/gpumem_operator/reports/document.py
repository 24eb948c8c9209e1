"""A snapshot as JSON for `kubectl gpumem` and other readers. Amounts are bytes, null is unknown."""

from collections.abc import Callable, Iterable
from typing import Any

from gpumem_operator.reports.cards import Card
from gpumem_operator.reports.enforcer import Enforcer
from gpumem_operator.reports.measured import GpuContainer
from gpumem_operator.reports.others import OtherUse
from gpumem_operator.reports.pictures import Amount, ProcessReading
from gpumem_operator.reports.process_hold import ProcessHold, hold_of
from gpumem_operator.reports.report import Server
from gpumem_operator.reports.snapshot import PodView, Snapshot

DOCUMENT_VERSION = 1
MOST_PROCESSES = 32
"""Of one container on one GPU; a pod may have thousands."""


def usage_document(
    snapshot: Snapshot, *, now: str, namespace: str = "", pod: str = ""
) -> dict[str, Any]:
    """All pods, or those of one namespace, or one; all cards, and what others hold of them, whose
    names nobody here knows. `now` is RFC 3339 in UTC."""
    views = [
        view
        for view in snapshot.pods.values()
        if namespace in ("", view.use.pod.namespace) and pod in ("", view.use.pod.name)
    ]
    views.sort(key=lambda view: (view.use.pod.namespace, view.use.pod.name))
    return {
        "schemaVersion": DOCUMENT_VERSION,
        "time": now,
        "pods": [pod_row(view) for view in views],
        "cards": [_card(card) for card in snapshot.cards],
        "others": [_other(use) for use in snapshot.others],
    }


def pod_row(view: PodView) -> dict[str, Any]:
    """One pod with its containers."""
    pod, total = view.use.pod, view.use.total
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "node": pod.node or None,
        "policy": pod.policy or None,
        "started": pod.started,
        "declaredBytes": view.declared_bytes,
        "charges": [
            {"tenant": tenant, "chargedBytes": charged}
            for tenant, charged in sorted(view.charges.items())
        ],
        "queued": [
            {"tenant": tenant, "queuedBytes": amount}
            for tenant, amount in sorted(view.queued.items())
        ],
        **_amount(total),
        "source": view.use.source,
        **_enforced(view.enforcer),
        "containers": [_container(one, view) for one in pod.containers],
        "elsewhere": _rows(view, lambda name: name not in {one.name for one in pod.containers}),
    }


def _container(container: GpuContainer, view: PodView) -> dict[str, Any]:
    enforcer, total = view.enforcers[container.name], view.use.of(container.name)
    return {
        "name": container.name,
        "gpus": container.gpus,
        "limitBytes": container.limit_bytes,
        "limitSource": container.source,
        **_amount(total),
        **_enforced(enforcer),
        "perGpu": _rows(view, lambda name: name == container.name),
    }


def _amount(amount: Amount) -> dict[str, Any]:
    """Either bytes, or why they are not known with the part that is."""
    return {
        "usedBytes": amount.bytes,
        "unknown": amount.unknown,
        "atLeastBytes": None if amount.known else amount.at_least,
    }


def _enforced(enforcer: Enforcer) -> dict[str, str | None]:
    return {
        "enforcedBy": enforcer.kind,
        "enforcedReason": enforcer.reason or None,
        "enforcedDetail": enforcer.detail or None,
    }


def _rows(view: PodView, wanted: Callable[[str], bool]) -> list[dict[str, Any]]:
    return [
        {
            "container": row.container or None,
            "gpu": row.gpu or None,
            **_amount(row.amount),
            "processes": [_process(hold_of(one)) for one in row.processes[:MOST_PROCESSES]],
            "processesLeftOut": max(len(row.processes) - MOST_PROCESSES, 0),
        }
        for row in view.use.rows
        if wanted(row.container)
    ]


def _process(hold: ProcessHold) -> dict[str, Any]:
    """The evidence about one process; the driver's limit is its whole container's."""
    process = hold.process
    return {
        "pid": process.pid,
        "usedBytes": process.amount.bytes,
        "unknown": process.amount.unknown,
        "boundBy": hold.enforcer.kind,
        "boundReason": hold.enforcer.reason or None,
        "capBytes": hold.cap_bytes,
        "reserveBytes": hold.reserve_bytes,
        "driverLimitBytes": process.driver_limit_bytes,
        "frameworks": [one.name for one in process.claim.frameworks] if process.claim else [],
        "servers": [one.model_dump(by_alias=True) for one in _servers(process)],
    }


def _servers(process: ProcessReading) -> list[Server]:
    return process.claim.servers if process.claim else []


def _other(use: OtherUse) -> dict[str, Any]:
    return {
        "node": use.node,
        "podUid": use.pod_uid,
        "containerId": use.container_id or None,
        "gpu": use.gpu or None,
        **_amount(use.amount),
        "processes": use.processes,
    }


def _card(card: Card) -> dict[str, Any]:
    parts = card.parts
    names: Iterable[str] = ("total", "reserved", "attributed", "unattributed", "free")
    return {
        "node": card.node,
        "gpu": card.uuid,
        "model": card.model,
        **{f"{name}Bytes": getattr(parts, name) if parts else None for name in names},
        "unknown": card.unknown,
    }

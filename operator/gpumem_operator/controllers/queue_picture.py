"""What the queue is decided by, gathered from the cache at one moment."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.entries import PodEntry
from gpumem_operator.ledger.charge import rates_of
from gpumem_operator.ledger.charged_pod import ChargedPod
from gpumem_operator.ledger.groups import Group, Held, WaitingPod
from gpumem_operator.ledger.queue import Account
from gpumem_operator.ledger.reservation import Reservation, stored_reservations


@dataclass(frozen=True)
class Picture:
    """All tenants that can be read, and all pods that carry our gate."""

    accounts: tuple[Account, ...]
    """In name order."""
    stored: Mapping[str, tuple[int, Mapping[str, Any]]]
    """By tenant, resourceVersion and status as they were read."""
    charged: Mapping[str, tuple[ChargedPod, ...]]
    """By tenant, the pods that it pays for."""
    waiting: tuple[WaitingPod, ...]
    seen: frozenset[str]
    """Of all pods with a reservation, uids of those that are in the cache."""
    opened: frozenset[str]
    """Of these, those that do not carry our gate, or are over."""
    alive: Mapping[Group, int]

    @cached_property
    def reservations(self) -> tuple[Reservation, ...]:
        return tuple(one for account in self.accounts for one in account.stored)


def picture_of(cache: Cache, values: Values) -> Picture:
    """Reads nothing but the cache."""
    charged = {
        name: tuple(charged_pods(cache, values, name)) for name in cache.memberships.by_tenant
    }
    accounts, stored = [], {}
    for (_, name), row in sorted(cache.tenants.rows()):
        spec = row.value.record.spec
        if spec is None or name not in charged:
            continue
        account = Account(
            name,
            limit_bytes=spec.quota.limit_bytes,
            charged_bytes=sum(pod.charged_bytes or 0 for pod in charged[name]),
            stored=stored_reservations(row.value.status),
            hold_after_seconds=spec.quota.hold_after_seconds,
        )
        accounts.append(account)
        stored[name] = (row.version, row.value.status)
    pods = [row.value for _, row in cache.pods.rows()]
    seen, opened = _reserved_pods(cache, accounts)
    return Picture(
        accounts=tuple(accounts),
        stored=stored,
        charged=charged,
        waiting=tuple(_waiting_pods(cache, values, pods)),
        seen=seen,
        opened=opened,
        alive=Counter(
            pod.group for pod in pods if pod.group and pod.charged and not pod.terminating
        ),
    )


def charged_pods(cache: Cache, values: Values, tenant: str) -> Iterable[ChargedPod]:
    """The pods that a tenant pays for now, without what they were measured to hold."""
    row = cache.tenants.get(("", tenant))
    if row is None or row.value.record.spec is None:
        return
    rates = rates_of(row.value.record.spec.quota, values)
    for namespace in cache.memberships.by_tenant.get(tenant, ()):
        for pod in cache.pods_of(namespace):
            if pod.gpu and pod.charged:
                yield ChargedPod(namespace, pod.pod["metadata"]["name"], pod.charge(rates))


def _reserved_pods(
    cache: Cache, accounts: Iterable[Account]
) -> tuple[frozenset[str], frozenset[str]]:
    seen, opened = set(), set()
    for account in accounts:
        for one in account.stored:
            row = cache.pods.get((one.namespace, one.name))
            if row is not None and row.uid == one.pod_uid:
                seen.add(one.pod_uid)
                if not row.value.gated:
                    opened.add(one.pod_uid)
    return frozenset(seen), frozenset(opened)


def _waiting_pods(cache: Cache, values: Values, pods: Iterable[PodEntry]) -> Iterable[WaitingPod]:
    gated = [pod for pod in pods if pod.gated]
    revisions = _revisions(cache, {pod.pod["metadata"]["namespace"] for pod in gated})
    for pod in gated:
        metadata = pod.pod["metadata"]
        yield WaitingPod(
            uid=pod.uid,
            namespace=metadata["namespace"],
            name=metadata["name"],
            created=_seconds(metadata["creationTimestamp"]),
            needs=_needs(cache, values, pod),
            priority=pod.pod["spec"].get("priority") or 0,
            group=pod.group,
            older_revision=_older(pod, revisions),
        )


def _needs(cache: Cache, values: Values, pod: PodEntry) -> Mapping[str, int] | None:
    namespace = pod.pod["metadata"]["namespace"]
    unreadable = any(row.value.record.spec is None for _, row in cache.tenants.rows())
    if unreadable or cache.namespaces.get(("", namespace)) is None:
        return None
    return {
        tenant.name: pod.charge(rates_of(tenant.spec.quota, values)) or 0
        for tenant in cache.memberships.by_namespace.get(namespace, ())
        if tenant.spec is not None and tenant.spec.quota.on_exceeded != "Warn"
    }


Revisions = Mapping[tuple[str, str], Mapping[str, int]]
"""By namespace and Deployment, what the pods of each of its ReplicaSets are charged."""


def _revisions(cache: Cache, namespaces: Iterable[str]) -> Revisions:
    found: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for namespace in namespaces:
        for pod in cache.pods_of(namespace):
            if pod.charged and (revision := pod.revision) is not None:
                deployment, replica_set = revision
                found[namespace, deployment][replica_set] += pod.charge() or 0
    return found


def _older(pod: PodEntry, revisions: Revisions) -> Held | None:
    if pod.revision is None:
        return None
    deployment, replica_set = pod.revision
    sets = revisions.get((pod.pod["metadata"]["namespace"], deployment), {})
    amount = sum(amount for name, amount in sets.items() if name != replica_set)
    return Held(deployment, amount) if amount else None


def _seconds(time: str | None) -> float:
    """Seconds since 1970 of a creationTimestamp; 0 where there is none."""
    return datetime.fromisoformat(time).timestamp() if time else 0.0

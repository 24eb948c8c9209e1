"""What the queue is decided by, gathered from the cache at one moment."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from gpumem_operator import names
from gpumem_operator.api.quantity import add_bytes
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.charged_pods import charged_pods
from gpumem_operator.controllers.entries import PodEntry, TenantEntry
from gpumem_operator.controllers.table import Row
from gpumem_operator.ledger.book import Account
from gpumem_operator.ledger.charge import rates_of
from gpumem_operator.ledger.charged_pod import ChargedPod
from gpumem_operator.ledger.epoch import fenced_by
from gpumem_operator.ledger.groups import Group, Held, WaitingPod
from gpumem_operator.ledger.reservation import Reservation, stored_reservations


@dataclass(frozen=True)
class Picture:
    """All pods that carry our gate, and the tenants that the queue has to do with."""

    accounts: tuple[Account, ...]
    """Tenants that somebody waits for or has room reserved in, that are to be counted again, or
    whose status tells of a queue that is over or was not counted under this spec; in name order."""
    stored: Mapping[str, Row[TenantEntry]]
    """By tenant."""
    charged: Mapping[str, tuple[ChargedPod, ...]]
    """By tenant, the pods that it pays for."""
    waiting: tuple[WaitingPod, ...]
    seen: frozenset[str]
    """Of all pods with a reservation, uids of those that are in the cache."""
    opened: frozenset[str]
    """Of these, those whose reservations are over: tenants charge them, or they have ended."""
    stray: Mapping[str, str]
    """Of these, the namespaces by uid of those without our gate that a tenant with a reservation
    does not charge, by what is known of it and of the namespace."""
    alive: Mapping[Group, int]

    @cached_property
    def reservations(self) -> tuple[Reservation, ...]:
        return tuple(one for account in self.accounts for one in account.stored)


def picture_of(
    cache: Cache,
    values: Values,
    *,
    recount: Container[str] = frozenset(),
    known: Container[str] = frozenset(),
    without: Container[str] = frozenset(),
) -> Picture:
    """Reads nothing but the cache. `known` are uids of pods that were seen before tenants and
    namespaces were read as they are: who charges them is true. Tenants `without` whom this is done
    are left as they are, and so are pods that need room of them.

    Of tenants that nobody waits for nothing is summed up, unless `recount` has their name: this is
    done at each change of a pod.
    """
    rows = cache.gated_pods()
    gated = [row.value for row in rows]
    waiting = tuple(_waiting_pods(cache, values, rows, without))
    asked = {tenant for pod in waiting for tenant in pod.needs or ()}
    accounts, stored, charged = [], {}, {}
    for (_, name), row in sorted(cache.tenants.rows()):
        record, status = row.value.record, row.value.status
        reservations = stored_reservations(status)
        concerned = name in asked or name in recount or reservations or status.get("queue")
        counted = (
            status.get("queuedBytes") is not None
            and status.get("observedGeneration") == record.generation
        )
        if record.spec is None or name not in cache.memberships.by_tenant or name in without:
            continue
        if counted and not concerned:
            continue
        charged[name] = tuple(charged_pods(cache, values, record))
        account = Account(
            name,
            limit_bytes=record.spec.quota.limit_bytes,
            charged_bytes=add_bytes(pod.charged_bytes or 0 for pod in charged[name]),
            stored=reservations,
            hold_after_seconds=record.spec.quota.hold_after_seconds,
        )
        accounts.append(account)
        stored[name] = row
    seen, opened, stray = _reserved_pods(cache, accounts, known)
    return Picture(
        accounts=tuple(accounts),
        stored=stored,
        charged=charged,
        waiting=waiting,
        seen=seen,
        opened=opened,
        stray=stray,
        alive=_alive(cache, gated),
    )


def _alive(cache: Cache, gated: Sequence[PodEntry]) -> Mapping[Group, int]:
    """Pods beside those that wait, of the groups of these."""
    groups = {pod.group for pod in gated if pod.group}
    namespaces = {pod.measured.namespace for pod in gated if pod.group}
    return Counter(
        pod.group
        for namespace in namespaces
        for pod in cache.pods_of(namespace)
        if pod.group in groups and pod.charged and not pod.terminating
    )


def _reserved_pods(
    cache: Cache, accounts: Iterable[Account], known: Container[str]
) -> tuple[frozenset[str], frozenset[str], Mapping[str, str]]:
    seen, opened, stray = set(), set(), {}
    for account in accounts:
        places = frozenset(cache.memberships.by_tenant[account.name])
        for one in account.stored:
            row = cache.pods.get((one.namespace, one.name))
            if row is None or row.uid != one.pod_uid:
                continue
            seen.add(one.pod_uid)
            if row.value.gated:
                continue
            if row.value.finished or one.namespace in places or one.pod_uid in known:
                opened.add(one.pod_uid)
            else:
                # The watch of namespaces may be behind that of pods. While this tenant does not
                # charge the pod, nothing but its reservation does.
                stray[one.pod_uid] = one.namespace
    return frozenset(seen), frozenset(opened - stray.keys()), stray


def _waiting_pods(
    cache: Cache, values: Values, gated: Sequence[Row[PodEntry]], without: Container[str]
) -> Iterable[WaitingPod]:
    revisions = _revisions(cache, {row.value.pod["metadata"]["namespace"] for row in gated})
    for row in gated:
        pod, metadata = row.value, row.value.pod["metadata"]
        yield WaitingPod(
            uid=pod.uid,
            namespace=metadata["namespace"],
            name=metadata["name"],
            created=created_at(pod),
            needs=needs_of(cache, values, pod, without=without),
            priority=pod.pod["spec"].get("priority") or 0,
            group=pod.group,
            version=row.version,
            fenced_by=fenced_by(pod.annotations.get(names.FENCE_ANNOTATION)),
            older_revision=_older(pod, revisions),
            undeclared=pod.undeclared,
        )


def needs_of(
    cache: Cache, values: Values, pod: PodEntry, *, without: Container[str] = frozenset()
) -> Mapping[str, int] | None:
    """Bytes by tenant that a pod with our gate waits for; None where not all can be read, or one
    of them is to be left as it is."""
    namespace = pod.pod["metadata"]["namespace"]
    if cache.memberships.unreadable or cache.namespaces.get(("", namespace)) is None:
        return None
    needs = {
        tenant.name: pod.charge(rates_of(tenant.spec.quota, values)) or 0
        for tenant in cache.memberships.by_namespace.get(namespace, ())
        if tenant.spec is not None and tenant.spec.quota.on_exceeded != "Warn"
    }
    return None if any(name in without for name in needs) else needs


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


def created_at(pod: PodEntry) -> float:
    """Seconds since 1970; 0 where the pod has no creationTimestamp."""
    time = pod.pod["metadata"]["creationTimestamp"]
    return datetime.fromisoformat(time).timestamp() if time else 0.0

"""A small API server: it compares resourceVersions and nothing else, and answers no patch of pods
of `silent` namespaces, as where somebody's webhook does not answer.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace

from gpumem_operator.ledger.groups import Group
from gpumem_operator.ledger.reservation import Reservation

MEMBERSHIP: Mapping[str, tuple[str, ...]] = {
    "alone": ("a",),
    "first": ("a",),
    "both": ("a", "b"),
    "second": ("b",),
    "third": ("refusing",),
    "fourth": ("b", "refusing"),
}
"""Tenants of each namespace; pods of `refusing` are reserved for by webhooks and never gated."""
COVERED = {**MEMBERSHIP, "first": ("a", "b")}
"""The same once `b` selects another namespace."""
REFUSING = ("third", "fourth")


@dataclass(frozen=True)
class Pod:
    """One version of a pod."""

    uid: str
    namespace: str
    amount: int
    version: int
    created: float
    gated: bool
    finished: bool = False
    deleted: bool = False
    group: Group | None = None
    priority: int = 0
    fence: int = 0

    @property
    def charged(self) -> bool:
        return not (self.gated or self.finished or self.deleted)


@dataclass(frozen=True)
class Tenant:
    """One version of a tenant with its status."""

    name: str
    limit: int
    version: int = 1
    epoch: int | None = None
    charged: int = 0
    counted: bool = False
    """Whether `charged` was written under this limit."""
    held: int = 0
    reservations: tuple[Reservation, ...] = ()


class ConflictError(Exception):
    """Somebody else wrote first."""


class NoAnswerError(Exception):
    """Somebody's webhook has not let the patch through."""


@dataclass
class Server:
    """What is stored."""

    tenants: dict[str, Tenant]
    pods: dict[str, Pod] = field(default_factory=dict)
    version: int = 1
    now: float = 0.0
    history: list[Pod] = field(default_factory=list)
    """Every version of every pod, for watches."""
    silent: frozenset[str] = frozenset()
    """Namespaces whose pods can not be patched at present."""
    members: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MEMBERSHIP)
    """Whoever decides knows them at once; what was decided before stays as it is."""

    def write(self, wanted: Tenant) -> Tenant:
        """A status, if its version is the stored one. Raises ConflictError."""
        if self.tenants[wanted.name].version != wanted.version:
            raise ConflictError
        self.version += 1
        stored = self.tenants[wanted.name] = replace(wanted, version=self.version)
        return stored

    def set_limit(self, name: str, limit: int) -> None:
        self.write(replace(self.tenants[name], limit=limit, counted=False))

    def put(self, pod: Pod) -> Pod:
        self.version += 1
        stored = replace(pod, version=self.version)
        if stored.deleted:
            self.pods.pop(stored.uid, None)
        else:
            self.pods[stored.uid] = stored
        self.history.append(stored)
        return stored

    def patch(self, pod: Pod) -> Pod | None:
        """What a patch of a pod as it was read answers: None where there is none any more.

        Raises ConflictError where it changed, and NoAnswerError.
        """
        if pod.namespace in self.silent:
            raise NoAnswerError
        stored = self.pods.get(pod.uid)
        if stored is not None and stored.version != pod.version:
            raise ConflictError
        return stored and self.put(pod)

    def taken(self, tenant: str, *, without: Container[str] = ()) -> int:
        """What the tenant's pods take, and what is kept for others: counted from what is true."""
        charged = {
            pod.uid: pod.amount
            for pod in self.pods.values()
            if pod.charged and tenant in self.members[pod.namespace]
        }
        kept = {
            one.pod_uid: one.amount_bytes
            for one in self.tenants[tenant].reservations
            if one.pod_uid not in charged
        }
        return sum(amount for uid, amount in (charged | kept).items() if uid not in without)

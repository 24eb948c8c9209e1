"""What every replica knows of the cluster, kept by kopf's watches and by whole lists."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from gpumem_operator import names
from gpumem_operator.api.memberships import Memberships, memberships
from gpumem_operator.api.records import (
    NamespaceRecord,
    Surroundings,
    namespace_record,
    policy_record,
    tenant_record,
    tenants_of,
)
from gpumem_operator.api.seal import Seal
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.entries import (
    PodEntry,
    PolicyEntry,
    TenantEntry,
    pod_entry,
    slim_node,
)
from gpumem_operator.controllers.inbox import Inbox
from gpumem_operator.controllers.lists import read_all, read_changed
from gpumem_operator.controllers.table import Key, Row, Table
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import ApiError
from gpumem_operator.kube.resources import NAMESPACES, NODES, PODS, POLICIES, TENANTS, Resource

WATCHED_PODS: Final = names.MANAGED_LABEL
"""Label selector of the watch: pods with the label, whatever its value."""


class Cache:
    """Policies, tenants, namespaces, nodes, and the pods that carry our label."""

    def __init__(self, values: Values, *, own_namespace: str) -> None:
        self._ignored = frozenset([*values.ignored_namespaces, own_namespace])
        self.policies: Table[PolicyEntry] = Table(
            lambda raw: PolicyEntry(policy_record(raw), raw.get("status") or {})
        )
        self.tenants: Table[TenantEntry] = Table(
            lambda raw: TenantEntry(tenant_record(raw), raw.get("status") or {})
        )
        self.namespaces: Table[NamespaceRecord] = Table(namespace_record)
        self.nodes: Table[Mapping[str, Any]] = Table(slim_node)
        self.pods: Table[PodEntry] = Table(lambda raw: pod_entry(self.verified(raw), values))
        self.seal: Seal | None = None
        """Has to be set before anything is listed or watched."""
        self.departed: Inbox[tuple[Key, str]] = Inbox()
        """Pods that the watch or a list shows no more: they may have lost the label only."""
        self.follow_departed = False
        """Set by the leader, who looks after them. Others forget them, and list when they lead."""
        self.complete = False
        """Whether everything has been listed once."""
        self._pods_in: defaultdict[str, set[Key]] = defaultdict(set)
        self._policies_in: defaultdict[str, set[Key]] = defaultdict(set)
        self._gated: set[Key] = set()
        self._listing = asyncio.Lock()
        self._memberships: Memberships | None = None
        """None: not known since a namespace or the spec of a tenant changed."""
        self.pods.lost = self.depart
        self.namespaces.listeners.append(self._follow_namespace)
        self.tenants.listeners.append(self._follow_tenant)
        self.pods.listeners.append(lambda key, _, new: _index(self._pods_in, key, new))
        self.pods.listeners.append(self._follow_gate)
        self.policies.listeners.append(lambda key, _, new: _index(self._policies_in, key, new))

    @property
    def tables(self) -> tuple[tuple[Resource, Table[Any]], ...]:
        return (
            (NAMESPACES, self.namespaces),
            (POLICIES, self.policies),
            (TENANTS, self.tenants),
            (NODES, self.nodes),
            (PODS, self.pods),
        )

    def verified(self, pod: Mapping[str, Any]) -> Mapping[str, Any]:
        """The pod without declarations that admission did not write."""
        if self.seal is None:
            raise RuntimeError("pods can not be judged before the key of the seals is known")
        return self.seal.verified(pod)

    def keys_of_pods(self, namespace: str) -> Iterable[Key]:
        """Pods of one namespace by namespace and name, in no order."""
        return tuple(self._pods_in.get(namespace, ()))

    def pods_of(self, namespace: str) -> Iterable[PodEntry]:
        """Pods of one namespace, in no order."""
        for key in self.keys_of_pods(namespace):
            if row := self.pods.get(key):
                yield row.value

    def gated_pods(self) -> list[Row[PodEntry]]:
        """Pods that carry our gate, by namespace and name."""
        rows = (self.pods.get(key) for key in sorted(self._gated))
        return [row for row in rows if row]

    def _follow_gate(self, key: Key, _: object, new: PodEntry | None) -> None:
        if new is not None and new.gated:
            self._gated.add(key)
        else:
            self._gated.discard(key)

    def policies_of(self, namespace: str) -> tuple[PolicyEntry, ...]:
        """Policies of one namespace, by name."""
        rows = (self.policies.get(key) for key in sorted(self._policies_in.get(namespace, ())))
        return tuple(row.value for row in rows if row)

    @property
    def memberships(self) -> Memberships:
        """Which namespaces belong to which tenants."""
        if self._memberships is None:
            tenants = (row.value.record for _, row in self.tenants.rows())
            namespaces = (row.value for _, row in self.namespaces.rows())
            self._memberships = memberships(namespaces, tenants)
        return self._memberships

    def _follow_namespace(self, _key: Key, _old: object, _new: object) -> None:
        self._memberships = None

    def _follow_tenant(self, _key: Key, old: TenantEntry | None, new: TenantEntry | None) -> None:
        # Its status is written every few seconds, and says nothing about namespaces.
        if old is None or new is None or old.record != new.record:
            self._memberships = None

    def surroundings(self, namespace: str) -> Surroundings:
        """What decides about the pods of one namespace."""
        record = self.namespace_record(namespace)
        tenants = tuple(row.value.record for _, row in self.tenants.rows())
        return Surroundings(
            namespace=record,
            policies=tuple(entry.record for entry in self.policies_of(namespace)),
            tenants=tenants_of(record, tenants),
        )

    def namespace_record(self, namespace: str) -> NamespaceRecord:
        """The namespace with its labels; without any where it is not known (yet)."""
        row = self.namespaces.get(("", namespace))
        return row.value if row else NamespaceRecord(namespace, {})

    def is_ignored(self, namespace: str) -> bool:
        """Whether admission is kept away from the pods of this namespace."""
        row = self.namespaces.get(("", namespace))
        labelled = row is not None and row.value.labels.get(names.IGNORE_LABEL) == "true"
        return labelled or namespace in self._ignored

    def depart(self, key: Key, uid: str) -> None:
        """The watch and lists show labelled pods only, and this one is there no more."""
        if self.follow_departed:
            self.departed.add((key, uid))
        else:
            self.pods.drop(key, uid)

    async def list_all(self, api: Api) -> None:
        """Read everything anew, one kind after the other.

        Raises ApiError: where a kind was refused, after all others were read.
        """
        failed: ApiError | None = None
        # Two lists of one table at a time would not tell what went away during which.
        async with self._listing:
            for resource, table in self.tables:
                try:
                    if resource is PODS:
                        await self._renew_pods(api)
                    else:
                        await read_all(api, resource, table)
                except ApiError as error:
                    if not error.status:  # No answer came, and none would come about the others.
                        raise
                    failed = failed or error
        if failed is not None:
            raise failed
        self.complete = True

    async def list_pods(self, api: Api) -> None:
        """Know every pod with our label as it is when this is called, or later. Raises ApiError."""
        async with self._listing:
            await self._renew_pods(api)

    async def _renew_pods(self, api: Api) -> None:
        read = read_changed if len(self.pods) else read_all
        await read(api, PODS, self.pods, labels=WATCHED_PODS)


def _index(places: dict[str, set[Key]], key: Key, value: object | None) -> None:
    namespace = key[0]
    if value is not None:
        places[namespace].add(key)
    else:
        places[namespace].discard(key)
        if not places[namespace]:
            del places[namespace]

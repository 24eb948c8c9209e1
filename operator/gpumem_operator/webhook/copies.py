"""Copies of policies, tenants and namespaces, parsed once for each event.

A status that changes with every pod says nothing new about pods: only what decides counts as a
change. The time of the last change is kept, because one change seldom comes alone (see
`surroundings.py`). A list is a change of everything: what is in it may have come a moment before.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpumem_operator.api.records import (
    NamespaceRecord,
    PolicyRecord,
    TenantRecord,
    namespace_record,
    policy_record,
    tenant_record,
)

Clock = Callable[[], float]
"""Monotonic seconds."""

LONG_AGO = float("-inf")


class PolicyCopy:
    """All policies, by namespace."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._namespaces: dict[str, dict[str, PolicyRecord]] = {}
        self._listed = LONG_AGO
        self._changed: dict[str, float] = {}

    def of(self, namespace: str) -> tuple[PolicyRecord, ...]:
        return tuple(self._namespaces.get(namespace, {}).values())

    def changed(self, namespace: str) -> float:
        """When a policy of the namespace last changed."""
        return max(self._listed, self._changed.get(namespace, LONG_AGO))

    def replace(self, objects: Sequence[Mapping[str, Any]]) -> None:
        self._namespaces = {}
        for raw in objects:
            record = policy_record(raw)
            self._namespaces.setdefault(record.namespace, {})[record.name] = record
        self._listed = self._clock()
        self._changed = {}

    def put(self, raw: Mapping[str, Any]) -> None:
        metadata = raw["metadata"]
        namespace = self._namespaces.setdefault(metadata["namespace"], {})
        if _same_spec(namespace.get(metadata["name"]), metadata):
            return
        namespace[metadata["name"]] = policy_record(raw)
        self._changed[metadata["namespace"]] = self._clock()

    def drop(self, raw: Mapping[str, Any]) -> None:
        metadata = raw["metadata"]
        namespace = self._namespaces.get(metadata["namespace"], {})
        namespace.pop(metadata["name"], None)
        if not namespace:
            self._namespaces.pop(metadata["namespace"], None)
        self._changed[metadata["namespace"]] = self._clock()

    def forget(self, namespace: str) -> None:
        """The namespace is gone."""
        self._changed.pop(namespace, None)


class TenantCopy:
    """All tenants."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tenants: dict[str, TenantRecord] = {}
        self._all: tuple[TenantRecord, ...] = ()
        self.changed = LONG_AGO

    def all(self) -> tuple[TenantRecord, ...]:
        return self._all

    def replace(self, objects: Sequence[Mapping[str, Any]]) -> None:
        records = (tenant_record(raw) for raw in objects)
        self._tenants = {record.name: record for record in records}
        self._note_change()

    def put(self, raw: Mapping[str, Any]) -> None:
        metadata = raw["metadata"]
        if _same_spec(self._tenants.get(metadata["name"]), metadata):
            return
        self._tenants[metadata["name"]] = tenant_record(raw)
        self._note_change()

    def drop(self, raw: Mapping[str, Any]) -> None:
        self._tenants.pop(raw["metadata"]["name"], None)
        self._note_change()

    def _note_change(self) -> None:
        self._all = tuple(self._tenants.values())
        self.changed = self._clock()


class NamespaceCopy:
    """All namespaces with their labels."""

    def __init__(self, clock: Clock, *, on_drop: Callable[[str], None]) -> None:
        self._clock = clock
        self._on_drop = on_drop
        self._namespaces: dict[str, NamespaceRecord] = {}
        self._listed = LONG_AGO
        self._changed: dict[str, float] = {}

    def of(self, name: str) -> NamespaceRecord | None:
        return self._namespaces.get(name)

    def changed(self, name: str) -> float:
        """When the namespace appeared or its labels last changed."""
        return max(self._listed, self._changed.get(name, LONG_AGO))

    def replace(self, objects: Sequence[Mapping[str, Any]]) -> None:
        records = (namespace_record(raw) for raw in objects)
        self._namespaces = {record.name: record for record in records}
        self._listed = self._clock()
        self._changed = {}

    def put(self, raw: Mapping[str, Any]) -> None:
        record = namespace_record(raw)
        if self._namespaces.get(record.name) == record:
            return
        self._namespaces[record.name] = record
        self._changed[record.name] = self._clock()

    def drop(self, raw: Mapping[str, Any]) -> None:
        name = raw["metadata"]["name"]
        self._namespaces.pop(name, None)
        self._changed.pop(name, None)
        self._on_drop(name)


def _same_spec(record: PolicyRecord | TenantRecord | None, metadata: Mapping[str, Any]) -> bool:
    return (
        record is not None
        and record.uid == metadata.get("uid")
        and record.generation == metadata.get("generation")
    )

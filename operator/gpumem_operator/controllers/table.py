"""The latest version of every object of a kind, from events and lists that overlap in time.

Events of a watch are not enough: when a watch has to begin anew, objects that went away meanwhile
are never mentioned again. A whole list now and then takes them out, and neither an older list nor a
late event may bring an older version, or an object that is gone, back.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Key = tuple[str, str]
"""Namespace (empty for kinds without one) and name."""
V = TypeVar("V")


@dataclass(frozen=True)
class Row(Generic[V]):
    """One object."""

    uid: str
    version: int
    value: V


class Table(Generic[V]):
    """Objects of one kind, as values that `read` makes from raw objects."""

    def __init__(self, read: Callable[[Mapping[str, Any]], V]) -> None:
        self._read = read
        self._rows: dict[Key, Row[V]] = {}
        self._gone: set[str] | None = None
        """While a list is under way: uids of what went away meanwhile."""
        self.listeners: list[Callable[[Key, V | None, V | None], None]] = []
        """Called with key, old and new value after each change; None for no object."""
        self.lost: Callable[[Key, str], None] = self.drop
        """Called with key and uid of each object that a whole list did not show."""

    def get(self, key: Key) -> Row[V] | None:
        return self._rows.get(key)

    def rows(self) -> Iterable[tuple[Key, Row[V]]]:
        return self._rows.items()

    def __len__(self) -> int:
        return len(self._rows)

    def knows(self, raw: Mapping[str, Any]) -> bool:
        """Whether this version of an object, of which the metadata suffice, or a newer one was
        seen; that of a namesake counts too."""
        known = self._rows.get(key_of(raw))
        return known is not None and known.version >= _version(raw["metadata"])

    def see(self, raw: Mapping[str, Any]) -> None:
        """Take in one version of an object, unless a newer one is known."""
        metadata = raw["metadata"]
        key, uid = key_of(raw), metadata["uid"]
        if uid in (self._gone or ()) or self.knows(raw):
            return
        known = self._rows.get(key)
        value = self._read(raw)
        same = known is not None and known.value == value
        # A value that says the same stays the same one: nobody is told that there is another.
        row = Row(uid, _version(metadata), known.value if known and same else value)
        self._rows[key] = row
        if not same:
            self._tell(key, known, row)

    def drop(self, key: Key, uid: str) -> None:
        """The object with this uid is gone for good."""
        if self._gone is not None:
            self._gone.add(uid)
        known = self._rows.get(key)
        if known is not None and known.uid == uid:
            del self._rows[key]
            self._tell(key, known, None)

    def begin_list(self) -> None:
        """From now on remember what goes away, until `end_list`."""
        self._gone = set()

    def end_list(self, listed: Container[str], version: str) -> None:
        """A whole list that was asked for after `begin_list` has been taken in by `see`.

        Objects whose uid is not `listed` are lost, unless their version is newer than the list's.
        """
        self._gone = None
        as_of = _number(version)
        lost = [
            (key, row.uid)
            for key, row in self._rows.items()
            if row.uid not in listed and row.version <= as_of
        ]
        for key, uid in lost:
            self.lost(key, uid)

    def _tell(self, key: Key, old: Row[V] | None, new: Row[V] | None) -> None:
        for listener in self.listeners:
            listener(key, old.value if old else None, new.value if new else None)


def key_of(raw: Mapping[str, Any]) -> Key:
    """Namespace and name of a raw object."""
    metadata = raw["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def _version(metadata: Mapping[str, Any]) -> int:
    return _number(metadata.get("resourceVersion") or "")


def _number(version: str) -> int:
    """resourceVersions of one kind can be compared as numbers: Kubernetes promises it since 1.35,
    and every API server on etcd does it."""
    return int(version) if version.isdecimal() else 0

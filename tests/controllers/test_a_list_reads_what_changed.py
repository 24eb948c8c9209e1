"""A table that follows a watch is renewed by metadata, and ends up as if all objects were read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.stored import Raw
from gpumem_operator.controllers.lists import FEW, read_all, read_changed
from gpumem_operator.controllers.table import Table
from gpumem_operator.kube.api import JSON, METADATA_OF_LIST, Api, Query
from gpumem_operator.kube.errors import Gone, NotFound
from gpumem_operator.kube.resources import PODS

LABEL = "example/label"


def raw(name: str, uid: str, version: int) -> Raw:
    metadata = {"namespace": "team", "name": name, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"version": version}}


def table(*known: Raw) -> Table[tuple[str, int]]:
    """Of uids and versions, the latter from where metadata have nothing."""
    made: Table[tuple[str, int]] = Table(
        lambda found: (found["metadata"]["uid"], found["spec"]["version"])
    )
    for one in known:
        made.see(one)
    return made


def contents(found: Table[tuple[str, int]]) -> Mapping[str, tuple[str, int]]:
    return {key[1]: row.value for key, row in found.rows()}


@dataclass
class Server(Api):
    """Lists pods in pages of two, as they were when the first was asked for; reads single ones."""

    pods: dict[str, Raw]
    later: dict[str, Raw | None] = field(default_factory=dict)
    """What became of pods between the list and the reading of single ones; None: deleted."""
    version: int = 100
    forgets: bool = False
    """The place in a list, once."""
    whole_pages: int = 0
    read: list[str] = field(default_factory=list)

    async def get(
        self,
        path: str,
        *,
        query: Query | None = None,
        accept: str = JSON,
        seconds: float = 1.0,  # noqa: ARG002
    ) -> Raw:
        if path != PODS.path():
            return self._one(path.rpartition("/")[2])
        assert query is not None
        assert query["labelSelector"] == LABEL
        start = int(query.get("continue", "0"))
        if start and self.forgets:
            self.forgets = False
            raise Gone(path, "410", 410)
        self.whole_pages += accept == JSON
        names = sorted(self.pods)
        items = [self.pods[name] for name in names[start : start + 2]]
        if accept == METADATA_OF_LIST:
            items = [{"metadata": item["metadata"]} for item in items]
        rest = str(start + 2) if start + 2 < len(names) else ""
        return {
            "metadata": {"resourceVersion": str(self.version), "continue": rest},
            "items": items,
        }

    def _one(self, name: str) -> Raw:
        self.read.append(name)
        found = self.later.get(name, self.pods.get(name))
        if found is None:
            raise NotFound(f"GET {name}", "404", 404)
        return found


async def renew(known: Table[tuple[str, int]], server: Server) -> Mapping[str, tuple[str, int]]:
    await read_changed(server, PODS, known, labels=LABEL)
    return contents(known)


async def test_nothing_is_read_again_that_did_not_change() -> None:
    known = table(raw("a", "1", 5), raw("b", "2", 6))
    server = Server({"a": raw("a", "1", 5), "b": raw("b", "2", 9), "c": raw("c", "3", 8)})
    assert await renew(known, server) == {"a": ("1", 5), "b": ("2", 9), "c": ("3", 8)}
    assert (server.read, server.whole_pages) == (["b", "c"], 0)


async def test_what_the_list_does_not_show_any_more_goes() -> None:
    known = table(raw("a", "1", 5), raw("b", "2", 6))
    assert await renew(known, Server({"b": raw("b", "2", 6)})) == {"b": ("2", 6)}


async def test_a_namesake_takes_the_place_of_what_was_known() -> None:
    known = table(raw("a", "old", 5))
    assert await renew(known, Server({"a": raw("a", "new", 9)})) == {"a": ("new", 9)}


@pytest.mark.parametrize("successor", [None, raw("a", "another", 120)], ids=["none", "namesake"])
async def test_what_went_away_after_the_list_goes_and_its_namesake_is_left_to_the_watch(
    successor: Raw | None,
) -> None:
    known = table(raw("a", "1", 5))
    server = Server({"a": raw("a", "1", 9)}, later={"a": successor})
    assert await renew(known, server) == {}


async def test_where_much_changed_whole_objects_are_listed() -> None:
    pods = {f"p{number}": raw(f"p{number}", str(number), 9) for number in range(FEW + 1)}
    known = table(*(raw(name, one["metadata"]["uid"], 5) for name, one in pods.items()))
    server = Server(pods)
    assert set((await renew(known, server)).values()) == {(str(n), 9) for n in range(FEW + 1)}
    assert not server.read
    assert server.whole_pages


async def test_a_list_that_begins_anew_counts_once() -> None:
    pods = {name: raw(name, name, 9) for name in "abc"}
    server = Server(pods, forgets=True)
    assert await renew(table(), server) == {name: (name, 9) for name in "abc"}
    assert sorted(server.read) == ["a", "b", "c"]


NAMES = st.sampled_from("abcdef")
STORED = st.dictionaries(NAMES, st.tuples(st.sampled_from("xy"), st.integers(1, 99)))


@given(STORED, STORED)
async def test_the_table_holds_what_it_would_if_everything_were_read(
    before: dict[str, tuple[str, int]], now: dict[str, tuple[str, int]]
) -> None:
    # Versions of what is known are as old as, or older than, those that are stored.
    known = {
        name: (uid, min(version, now[name][1]) if name in now else version)
        for name, (uid, version) in before.items()
        if name not in now or uid == now[name][0] or version < now[name][1]
    }
    server = Server({name: raw(name, name + uid, version) for name, (uid, version) in now.items()})
    ours, other = (
        table(*(raw(name, name + uid, version) for name, (uid, version) in known.items()))
        for _ in range(2)
    )
    await read_all(server, PODS, other, labels=LABEL)
    assert await renew(ours, server) == contents(other)

"""Whole lists repair what watches missed: of each kind, whatever becomes of the others."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.stored import Raw, node, policy
from controllers.team_cache import NAMESPACE, team_cache
from gpumem_operator.kube.api import Api
from gpumem_operator.kube.errors import ApiError
from gpumem_operator.kube.resources import NAMESPACES, NODES, PODS, POLICIES, TENANTS

KINDS = (NAMESPACES, POLICIES, TENANTS, NODES, PODS)


class Server(Api):
    """Has one object of some kinds; a list of one of them is refused."""

    def __init__(self, refused: str = "") -> None:
        self._refused = refused
        self._items: dict[str, list[Raw]] = {
            NAMESPACES.path(): [NAMESPACE],
            POLICIES.path(): [policy()],
            NODES.path(): [node()],
        }

    async def get(self, path: str, **_: Any) -> Raw:
        if path == self._refused:
            raise ApiError(f"GET {path}", "403", 403)
        return {"metadata": {"resourceVersion": "9"}, "items": self._items.get(path, [])}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.plural)
async def test_all_others_are_renewed(kind: Any) -> None:
    cache = team_cache()
    with pytest.raises(ApiError, match=kind.plural):
        await cache.list_all(Server(refused=kind.path()))
    assert not cache.complete
    # The tenant is there no more, and the others have come.
    wanted = {NAMESPACES: 1, POLICIES: 1, TENANTS: 0, NODES: 1, PODS: 0}
    unchanged = {NAMESPACES: 1, POLICIES: 0, TENANTS: 1, NODES: 0, PODS: 0}
    found = {resource: len(table) for resource, table in cache.tables}
    assert found == wanted | {kind: unchanged[kind]}


async def test_it_is_complete_once_every_kind_was_listed() -> None:
    cache = team_cache()
    await cache.list_all(Server())
    assert cache.complete

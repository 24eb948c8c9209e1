"""Somebody annotates a policy or a tenant while its status is about to be written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from controllers.stored import Raw, policy, tenant
from controllers.team_cache import status_worker, team_cache
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.table import Table
from gpumem_operator.kube.api import Api


class Annotating(Api):
    """While the first status is written, the other object gets a newer version that says the same,
    and the watch tells of it."""

    def __init__(self, table: Table[Any], other: Raw) -> None:
        self._table = table
        self._other = other
        self.written: list[tuple[str, str]] = []

    async def request(self, method: str, path: str, **fields: Any) -> Raw:  # noqa: ARG002
        metadata = {**self._other["metadata"], "resourceVersion": "7", "annotations": {"a": "b"}}
        self._table.see({**self._other, "metadata": metadata})
        version = fields["body"]["metadata"]["resourceVersion"]
        self.written.append((path.split("/")[-2], version))
        return {}


def two_policies() -> tuple[Cache, Table[Any], Raw]:
    cache = team_cache()
    # With what is told of the tenant out of the way.
    cache.tenants.drop(("", "research"), "uid-of-research")
    for name in ("one", "other"):
        cache.policies.see(policy(name))
    return cache, cache.policies, policy("other")


def two_tenants() -> tuple[Cache, Table[Any], Raw]:
    cache = team_cache()
    cache.tenants.drop(("", "research"), "uid-of-research")
    for name in ("one", "other"):
        cache.tenants.see(tenant(name))
    return cache, cache.tenants, tenant("other")


@pytest.mark.parametrize("make", [two_policies, two_tenants], ids=["policy", "tenant"])
async def test_its_status_is_written_under_the_newer_version(make: Any) -> None:
    cache, table, other = make()
    api = Annotating(table, other)
    worker = status_worker(cache, api, now=lambda: datetime(2026, 3, 1, tzinfo=UTC))

    assert await worker.reconcile(["team"]) == {}

    assert api.written == [("one", "1"), ("other", "7")]

"""A new leader has to renew its lease while it looks at thousands of pods for the first time."""

from __future__ import annotations

import asyncio

from controllers.stored import managed_pod, sealed, tenant
from gpumem_operator.api.seal import Seal
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.usage import UsageBoard

SEAL = Seal(b"k" * 32)
PODS = 1000


def board() -> UsageBoard:
    cache = Cache(Values(), own_namespace="operator")
    cache.seal = SEAL
    cache.tenants.see(tenant())
    cache.namespaces.see({"metadata": {"name": "team", "uid": "n", "resourceVersion": "1"}})
    for number in range(PODS):
        cache.pods.see(sealed(managed_pod(f"p{number}", policy="training"), SEAL))
    return UsageBoard(cache, values=Values())


async def test_another_task_gets_its_turn_several_times() -> None:
    turns = 0

    async def renew() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    renewal = asyncio.create_task(renew())
    await board().prepare()
    renewal.cancel()
    assert turns >= 4


async def test_the_first_look_is_the_same_prepared_or_not() -> None:
    prepared, other = board(), board()
    await prepared.prepare()
    assert prepared.snapshot().pods == other.snapshot().pods
    assert len(prepared.snapshot().pods) == PODS

"""A new leader has to renew its lease while it looks at thousands of pods for the first time."""

from __future__ import annotations

import asyncio

from controllers.stored import managed_pod
from controllers.team_cache import team_cache
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.usage import UsageBoard

PODS = 1000


def board() -> UsageBoard:
    pods = (managed_pod(f"p{number}", policy="training") for number in range(PODS))
    return UsageBoard(team_cache(*pods), values=Values())


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

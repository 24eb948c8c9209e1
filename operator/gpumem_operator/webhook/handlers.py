"""Every path that the webhook answers: one kopf handler each, and its id is the path.

The handlers take nothing from kopf's arguments, so the server may call them without the work of
making these (see `server.py`); called by kopf itself, they say the same.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import kopf

from gpumem_operator import names
from gpumem_operator.webhook.exchange import current
from gpumem_operator.webhook.reviewer import Reviewer

PODS = ("", "v1", "pods")


class Row(NamedTuple):
    """One registered handler, and what it may be asked about."""

    operation: str
    subresource: str
    handler: Callable[..., Any]


def register(registry: kopf.OperatorRegistry, reviewer: Reviewer) -> Mapping[str, Row]:
    """Register all handlers; returns them by id."""

    @kopf.on.mutate(*PODS, id=names.MUTATE_POD, operations=["CREATE"], registry=registry)
    async def mutate_pod(**_: object) -> None:
        exchange = current.get()
        exchange.verdict = await reviewer.pod(exchange)

    @kopf.on.mutate(
        *PODS,
        id=names.MUTATE_EPHEMERAL,
        subresource="ephemeralcontainers",
        operations=["UPDATE"],
        registry=registry,
    )
    async def mutate_ephemeral_containers(**_: object) -> None:
        exchange = current.get()
        exchange.verdict = await reviewer.ephemeral_containers(exchange)

    @kopf.on.validate(*PODS, id=names.CHECK_CLAIMS, operations=["CREATE"], registry=registry)
    async def check_resource_claims(**_: object) -> None:
        exchange = current.get()
        exchange.verdict = await reviewer.resource_claims(exchange)

    @kopf.on.validate(*PODS, id=names.RESERVE_ROOM, operations=["CREATE"], registry=registry)
    async def reserve_room(**_: object) -> None:
        exchange = current.get()
        exchange.verdict = await reviewer.room(exchange)

    @kopf.on.mutate(*PODS, id=names.ISOLATE_POD, operations=["CREATE"], registry=registry)
    async def isolate_pod(**_: object) -> None:
        exchange = current.get()
        exchange.verdict = await reviewer.isolated_pod(exchange)

    @kopf.on.mutate(
        *PODS,
        id=names.ISOLATE_EPHEMERAL,
        subresource="ephemeralcontainers",
        operations=["UPDATE"],
        registry=registry,
    )
    async def isolate_ephemeral_containers(**_: object) -> None:
        exchange = current.get()
        exchange.verdict = await reviewer.isolated_ephemeral_containers(exchange)

    return {
        names.MUTATE_POD: Row("CREATE", "", mutate_pod),
        names.MUTATE_EPHEMERAL: Row("UPDATE", "ephemeralcontainers", mutate_ephemeral_containers),
        names.ISOLATE_POD: Row("CREATE", "", isolate_pod),
        names.ISOLATE_EPHEMERAL: Row("UPDATE", "ephemeralcontainers", isolate_ephemeral_containers),
        names.CHECK_CLAIMS: Row("CREATE", "", check_resource_claims),
        names.RESERVE_ROOM: Row("CREATE", "", reserve_room),
    }

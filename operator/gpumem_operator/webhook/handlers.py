"""Every path that the webhook answers: one kopf handler each, and its id is the path."""

import kopf

from gpumem_operator import names
from gpumem_operator.webhook.exchange import current
from gpumem_operator.webhook.reviewer import Reviewer

PODS = ("", "v1", "pods")


def register(registry: kopf.OperatorRegistry, reviewer: Reviewer) -> frozenset[str]:
    """Register all handlers; returns their ids."""

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

    return frozenset({names.MUTATE_POD, names.MUTATE_EPHEMERAL, names.CHECK_CLAIMS})

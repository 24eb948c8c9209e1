"""Room for one pod in all tenants that it needs: in name order, all or nothing."""

from collections.abc import Sequence

from gpumem_operator.kube.errors import NotFound
from gpumem_operator.ledger.reserve import Asking, answer
from gpumem_operator.webhook.desk import Desk, Refusal, TenantStore


class Rooms:
    """One desk for each tenant that was ever asked: there are few."""

    def __init__(self, store: TenantStore) -> None:
        self._store = store
        self._desks: dict[str, Desk] = {}

    async def reserve(self, pod: Asking, tenants: Sequence[str]) -> Refusal | None:
        """None once room is stored in each of them. Raises ApiError.

        Where one refuses, fails or is waited for no longer, the others get theirs back.
        """
        given: list[Desk] = []
        provided = False
        try:
            for tenant in sorted(tenants):
                desk = self._desk(tenant)
                refusal = await desk.ask(pod)
                if refusal is not None:
                    return refusal
                given.append(desk)
            provided = True
        finally:
            if not provided:
                for desk in given:
                    desk.give_back(pod.uid)
        return None

    async def look(self, pod: Asking, tenants: Sequence[str]) -> Refusal | None:
        """What `reserve` would answer; nothing is written. Raises ApiError."""
        for tenant in sorted(tenants):
            try:
                page = await self._store.read(tenant)
            except NotFound:
                continue
            obstacle = answer(page, [pod]).refused.get(pod.uid)
            if obstacle is not None:
                return Refusal(obstacle, page.holders)
        return None

    def _desk(self, tenant: str) -> Desk:
        desk = self._desks.get(tenant)
        if desk is None:
            desk = self._desks[tenant] = Desk(tenant, self._store)
        return desk

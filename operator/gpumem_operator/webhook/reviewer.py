"""Joins one request with its surroundings and asks the core."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from gpumem_operator.admission.isolation import isolate_ephemeral_containers, isolate_pod
from gpumem_operator.admission.review import review_ephemeral_containers, review_pod
from gpumem_operator.admission.room import refuse, refuse_late
from gpumem_operator.admission.verdict import Verdict
from gpumem_operator.api.gates import is_gated
from gpumem_operator.api.pods import is_gpu_pod
from gpumem_operator.api.seal import Seal, without_declarations
from gpumem_operator.api.tenant import Quota
from gpumem_operator.api.values import Values
from gpumem_operator.kube.errors import ApiError
from gpumem_operator.kube.rest import Api
from gpumem_operator.ledger.charge import Rates, charge_pod, rates_of, undeclared_in
from gpumem_operator.ledger.node_enforcers import NodeSummary
from gpumem_operator.ledger.reserve import Asking
from gpumem_operator.webhook import claims, device_classes
from gpumem_operator.webhook.claims import ClaimReader
from gpumem_operator.webhook.desk import StoredTenants, TenantStore
from gpumem_operator.webhook.device_classes import DeviceClassReader
from gpumem_operator.webhook.exchange import Exchange
from gpumem_operator.webhook.rooms import Rooms
from gpumem_operator.webhook.surroundings import (
    READ_SECONDS,
    SurroundingsSource,
    UnreadableError,
)

_TRY_AGAIN: Final = (
    "Try again; if it stays so, the platform team finds the cause in the log of the operator's"
    " webhook"
)


class Reviewer:
    """One method for each path of the webhook. None of them raises for a fault of the cluster."""

    def __init__(
        self,
        surroundings: SurroundingsSource,
        api: Api,
        values: Values,
        *,
        tenants: TenantStore | None = None,
    ) -> None:
        self._surroundings = surroundings
        self._claims = ClaimReader(api)
        self._device_classes = DeviceClassReader(api)
        self._rooms = Rooms(tenants or StoredTenants(api))
        self._values = values
        self._seal: Seal | None = None
        self._nodes: NodeSummary | None = None
        self._needs_ca = bool(values.report.url) and not values.report.ca

    def trust(self, ca: str) -> None:
        """From now on tell sidecars that this CA (PEM) signs the address of reports.

        A CA in the chart's values goes before it; without an address there is nobody to trust.
        """
        if self._needs_ca:
            report = self._values.report.model_copy(update={"ca": ca})
            self._values = self._values.model_copy(update={"report": report})

    def seal_with(self, seal: Seal) -> None:
        """From now on declarations are sealed with this key."""
        self._seal = seal

    def know_nodes(self, nodes: NodeSummary | None) -> None:
        """From now on the cluster's nodes are these; None: that is not known."""
        self._nodes = nodes

    async def pod(self, exchange: Exchange) -> Verdict:
        try:
            surroundings = await self._surroundings.of(exchange.namespace)
        except UnreadableError as error:
            return self._pod_unreadable(exchange, error)
        return review_pod(
            exchange.pod,
            surroundings,
            self._values,
            seal=self._seal,
            nodes=self._nodes,
        )

    async def room(self, exchange: Exchange) -> Verdict:
        """For a pod that goes on at once or not at all: room in each of its tenants, or a refusal.

        Those that wait at our gate ask the leader.
        """
        if is_gated(exchange.pod):
            return Verdict()
        reserve = self._rooms.look if exchange.dry_run else self._rooms.reserve
        try:
            async with asyncio.timeout(READ_SECONDS):
                surroundings = await self._surroundings.of(exchange.namespace)
                tenants = [tenant.name for tenant in surroundings.tenants]
                refusal = await reserve(self._asking(exchange), tenants)
        except UnreadableError as error:
            return self._pod_unreadable(exchange, error)
        except ApiError as error:
            return refuse_late(exchange.title, str(error))
        except TimeoutError:
            return refuse_late(exchange.title, f"no answer within {READ_SECONDS} s")
        if refusal is None:
            return Verdict()
        undeclared = undeclared_in(self._judged(exchange), self._values)
        return refuse(exchange.title, refusal.obstacle, refusal.holders, undeclared=undeclared)

    def _judged(self, exchange: Exchange) -> Mapping[str, Any]:
        """The pod as the leader will read it: what admission did not seal does not count."""
        metadata = exchange.pod["metadata"]
        pod = {**exchange.pod, "metadata": {**metadata, "namespace": exchange.namespace}}
        return self._seal.verified(pod) if self._seal else without_declarations(pod)

    def _asking(self, exchange: Exchange) -> Asking:
        metadata, judged, values = exchange.pod["metadata"], self._judged(exchange), self._values

        charges: dict[Rates, int] = {}

        def charge(quota: Quota) -> int:
            rates = rates_of(quota, values)
            if rates not in charges:
                charges[rates] = charge_pod(judged, values, rates=rates).charge_bytes or 0
            return charges[rates]

        return Asking(str(metadata["uid"]), exchange.namespace, str(metadata["name"]), charge)

    async def ephemeral_containers(self, exchange: Exchange) -> Verdict:
        try:
            surroundings = await self._surroundings.of(exchange.namespace)
        except UnreadableError as error:
            return self._pod_unreadable(exchange, error)
        return review_ephemeral_containers(
            exchange.pod, exchange.old_pod, surroundings, self._values
        )

    async def isolated_pod(self, exchange: Exchange) -> Verdict:
        return Verdict(operations=tuple(isolate_pod(exchange.pod)))

    async def isolated_ephemeral_containers(self, exchange: Exchange) -> Verdict:
        return Verdict(
            operations=tuple(isolate_ephemeral_containers(exchange.pod, exchange.old_pod))
        )

    async def resource_claims(self, exchange: Exchange) -> Verdict:
        try:
            async with asyncio.timeout(READ_SECONDS):
                surroundings = await self._surroundings.of(exchange.namespace)
                if not surroundings.policies and not surroundings.tenants:
                    return Verdict()
                sentences = await self._devices(exchange)
        except UnreadableError as error:
            return self._claims_unreadable(exchange, error)
        except TimeoutError:
            late = UnreadableError(f"no answer within {READ_SECONDS} s")
            return self._claims_unreadable(exchange, late)
        if not sentences or self._values.resource_claims == "Warn":
            return Verdict(warnings=tuple(sentences))
        return Verdict(
            refusal=f"pod {exchange.title} {'; '.join(sentences)}. Ask for GPUs in"
            " resources.limits (nvidia.com/gpu), or have the platform team set the chart value"
            " resourceClaims to Warn"
        )

    async def _devices(self, exchange: Exchange) -> list[str]:
        """A sentence for each way by which the pod takes GPUs of which nothing is counted."""
        gpu_classes = self._values.gpu_device_classes
        uses = await self._claims.read(exchange.namespace, exchange.pod)
        behind = await self._device_classes.classes_behind(exchange.pod, gpu_classes)
        return [*claims.describe(uses, gpu_classes), *device_classes.describe(behind)]

    def _pod_unreadable(self, exchange: Exchange, error: UnreadableError) -> Verdict:
        # The webhook's configuration sends GPU pods only. Should it ever send others, they pass.
        if not is_gpu_pod(exchange.pod, self._values.memory_resource):
            return Verdict()
        return _unreadable(exchange, error)

    def _claims_unreadable(self, exchange: Exchange, error: UnreadableError) -> Verdict:
        unknown = f"whether pod {exchange.title} takes GPUs by a class was not read"
        if self._values.resource_claims == "Warn":
            return Verdict(warnings=(f"{unknown}: {error}",))
        return Verdict(
            refusal=f"{unknown} ({error}), and with the chart value resourceClaims at Refuse it is"
            f" not let in without. {_TRY_AGAIN}",
            code=500,
        )


def _unreadable(exchange: Exchange, error: UnreadableError) -> Verdict:
    return Verdict(
        refusal=f"pod {exchange.title} is not let in: which GPU memory policy and tenant apply to"
        f" namespace {exchange.namespace} could not be read ({error}), and without them its limit"
        f" is not known. {_TRY_AGAIN}",
        code=500,
    )

"""What decides about the pods of a namespace: from the copies, or read afresh where they may lag.

Copies follow the server some milliseconds behind. They may be believed when they know the
namespace and a policy or a tenant for it, and when nothing that concerns it changed in the last
seconds: whoever sets a namespace up writes its label, its tenant and its policy one after the
other, each comes over a watch of its own, and the first to arrive says that the others are on
their way. In all other cases the server itself is asked, with reads that begin after the pod was
sent. So a pod never passes because a watch was slow.

What remains: a label, tenant or policy that changes in a namespace at rest decides about pods as
soon as its event is here. A pod that was sent in those milliseconds is judged by what was valid
just before, as if it had been sent just before.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from gpumem_operator import names
from gpumem_operator.api.records import (
    NamespaceRecord,
    Surroundings,
    namespace_record,
    policy_record,
    tenant_record,
    tenants_of,
)
from gpumem_operator.kube.errors import ApiError
from gpumem_operator.kube.reflector import Reflector
from gpumem_operator.kube.rest import Api
from gpumem_operator.webhook.copies import Clock, NamespaceCopy, PolicyCopy, TenantCopy
from gpumem_operator.webhook.shared_read import SharedRead

SETTLING_SECONDS: Final = 2.0
"""After a change, the server is asked for so long."""
READ_SECONDS: Final = 1.5
"""For all that one pod waits for: less than the webhook's timeout of 2 s."""

POLICIES_PATH: Final = f"/apis/{names.API_VERSION}/{names.POLICY_PLURAL}"
TENANTS_PATH: Final = f"/apis/{names.API_VERSION}/{names.TENANT_PLURAL}"
NAMESPACES_PATH: Final = "/api/v1/namespaces"


class UnreadableError(Exception):
    """The server could not be asked in time."""


class SurroundingsSource(Protocol):
    """Where the reviewer gets surroundings from."""

    async def of(self, namespace: str) -> Surroundings:
        """Raises UnreadableError."""


class Copies:
    """The three copies and the reflectors that fill them."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._clock = clock
        self._policies = PolicyCopy(clock)
        self._tenants = TenantCopy(clock)
        self._namespaces = NamespaceCopy(clock, on_drop=self._policies.forget)
        self.reflectors = {
            "policies": Reflector(api, POLICIES_PATH, self._policies),
            "tenants": Reflector(api, TENANTS_PATH, self._tenants),
            "namespaces": Reflector(api, NAMESPACES_PATH, self._namespaces),
        }

    def missing(self) -> list[str]:
        """Kinds that were never listed."""
        return [kind for kind, reflector in self.reflectors.items() if not reflector.listed]

    def of(self, namespace: str) -> Surroundings | None:
        """None where the copies can not be believed."""
        record = self._namespaces.of(namespace)
        if record is None or not self._settled(namespace):
            return None
        found = Surroundings(
            namespace=record,
            policies=self._policies.of(namespace),
            tenants=tenants_of(record, self._tenants.all()),
        )
        return found if found.policies or found.tenants else None

    def _settled(self, namespace: str) -> bool:
        if not all(reflector.current for reflector in self.reflectors.values()):
            return False
        last_change = max(
            self._policies.changed(namespace),
            self._namespaces.changed(namespace),
            self._tenants.changed,
        )
        return self._clock() - last_change > SETTLING_SECONDS


class SurroundingsReader:
    """Copies first, the server where they do not suffice."""

    def __init__(self, copies: Copies, api: Api, *, on_read: Callable[[], None]) -> None:
        self._copies = copies
        self._api = api
        self._on_read = on_read
        self._reads: dict[str, SharedRead[Surroundings]] = {}

    async def of(self, namespace: str) -> Surroundings:
        """Raises UnreadableError."""
        return self._copies.of(namespace) or await self._read(namespace)

    async def _read(self, namespace: str) -> Surroundings:
        shared = self._reads.get(namespace)
        if shared is None:
            shared = self._reads[namespace] = SharedRead(
                partial(self._read_now, namespace), on_idle=partial(self._reads.pop, namespace)
            )
        try:
            async with asyncio.timeout(READ_SECONDS):
                return await shared.result()
        except TimeoutError:
            raise UnreadableError(f"no answer within {READ_SECONDS} s") from None
        except ApiError as error:
            raise UnreadableError(str(error)) from None

    async def _read_now(self, namespace: str) -> Surroundings:
        self._on_read()
        policies = f"/apis/{names.API_VERSION}/namespaces/{namespace}/{names.POLICY_PLURAL}"
        record, (raw_policies, _), (raw_tenants, _) = await asyncio.gather(
            self._namespace(namespace),
            self._api.list_all(policies, seconds=READ_SECONDS),
            self._api.list_all(TENANTS_PATH, seconds=READ_SECONDS),
        )
        tenants = tuple(tenant_record(raw) for raw in raw_tenants)
        return Surroundings(
            namespace=record,
            policies=tuple(policy_record(raw) for raw in raw_policies),
            tenants=tenants_of(record, tenants),
        )

    async def _namespace(self, name: str) -> NamespaceRecord:
        path = f"{NAMESPACES_PATH}/{name}"
        return namespace_record(await self._api.get(path, seconds=READ_SECONDS))

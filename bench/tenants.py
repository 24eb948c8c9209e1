"""`python -m bench.tenants`: how fast a queue opens gates, and what reserving adds to a create.

Pods wait for a quota that is raised then: the time until the tenant is charged for all of them is
that of reserving, opening and counting. Creates in a tenant that refuses, which ask for room in a
second call, alternate with creates in one that only warns. Kubelets there are none.
"""

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from bench.admission import shortened
from bench.compare import Comparison, Plan, compare
from bench.costs import Cost, main, table, write
from bench.load import Generator, Load
from bench.shapes import gpu_pod
from devcluster import Cluster
from devcluster.installation import Installation
from gpumem_operator import names
from gpumem_operator.kube.api import Api, Patch, connect
from gpumem_operator.kube.connection import connection_of
from gpumem_operator.kube.errors import NotFound
from gpumem_operator.kube.resources import NAMESPACES, SERVICE_ACCOUNTS, TENANTS
from gpumem_operator.webhook.surroundings import SETTLING_SECONDS

GATES_PER_SECOND: Final = 100.0
WAITING: Final = 500
QUEUES, REFUSES, WARNS = "bench-queues", "bench-refuses", "bench-warns"
_MODES: Final = {QUEUES: "Queue", REFUSES: "Reject", WARNS: "Warn"}
_ENOUGH: Final = "1000Ti"
_POD_BYTES: Final = 8 * 2**30
_CLIENTS: Final = 16
_POLL_SECONDS: Final = 0.02
PLANS: Final = tuple(
    Plan("GPU pod", Load(clients, dry_run=False), block=40, cycles=5) for clients in (1, 8)
)


def measure(*, quick: bool = False) -> list[Cost]:
    """On a cluster of its own, with one webhook and one controller."""
    with Cluster.start() as cluster, Installation.start(cluster):
        return asyncio.run(_measure(cluster, quick=quick))


async def _measure(cluster: Cluster, *, quick: bool) -> list[Cost]:
    waiting = 20 if quick else WAITING
    async with (
        connect(cluster.kubeconfig) as api,
        Generator(connection_of(cluster.kubeconfig)) as generator,
    ):
        for name, mode in _MODES.items():
            await _found(api, name, mode)
        await asyncio.sleep(SETTLING_SECONDS * 1.5)
        rate = await _gates_per_second(api, generator, waiting)
        found = [await _compare(generator, plan, quick=quick) for plan in PLANS]
    gates = f"gates opened per second, {waiting} pods that wait"
    return [
        Cost(gates, rate, "per s", GATES_PER_SECOND, least=True),
        *(cost for each in found for cost in _costs(each)),
    ]


async def _found(api: Api, name: str, mode: str) -> None:
    """A namespace of this name and its tenant; the one that queues has room for nobody yet."""
    await api.create(
        NAMESPACES.path(), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    )
    quota = {
        "limit": str(_POD_BYTES) if mode == "Queue" else _ENOUGH,
        "wholeGPU": "80Gi",
        "onExceeded": mode,
    }
    selector = {"matchLabels": {"kubernetes.io/metadata.name": name}}
    tenant = {
        "apiVersion": names.API_VERSION,
        "kind": names.TENANT_KIND,
        "metadata": {"name": name},
        "spec": {"namespaceSelector": selector, "quota": quota},
    }
    await api.create(TENANTS.path(), tenant)
    await _until(lambda: _is_there(api, name))


async def _until(asks: Callable[[], Awaitable[bool]]) -> None:
    while True:
        if await asks():
            return
        await asyncio.sleep(_POLL_SECONDS)


async def _is_there(api: Api, name: str) -> bool:
    try:
        await api.get(SERVICE_ACCOUNTS.path("default", namespace=name))
    except NotFound:
        return False
    return (await _status(api, name)).get("observedGeneration") is not None


async def _status(api: Api, name: str) -> dict[str, Any]:
    found: dict[str, Any] = (await api.get(TENANTS.path(name))).get("status") or {}
    return found


async def _gates_per_second(api: Api, generator: Generator, count: int) -> float:
    """From the raised quota until all of `count` pods are charged, and one that ran before."""
    load = Load(_CLIENTS, dry_run=False)
    await generator.run(load, gpu_pod(), namespace=QUEUES, count=count + 1)

    async def is_amount(field: str, pods: int) -> bool:
        return (await _status(api, QUEUES)).get(field) == pods * _POD_BYTES

    await _until(lambda: is_amount("queuedBytes", count))
    began = time.monotonic()
    quota = {"spec": {"quota": {"limit": _ENOUGH}}}
    await api.patch(TENANTS.path(QUEUES), quota, kind=Patch.MERGE)
    await _until(lambda: is_amount("chargedBytes", count + 1))
    return count / (time.monotonic() - began)


async def _compare(generator: Generator, plan: Plan, *, quick: bool) -> Comparison:
    return await compare(
        generator,
        gpu_pod(),
        shortened(plan) if quick else plan,
        namespaces={True: REFUSES, False: WARNS},
        choose=random.Random(),
        say=lambda _: None,
    )


def _costs(found: Comparison) -> list[Cost]:
    clients = found.plan.load.clients
    where = f"{clients} client{'s' if clients > 1 else ''}"
    return [
        Cost(f"create in a tenant that refuses by one that warns, {where}", found.ratio, "x"),
        Cost(f"the same, added, {where}", found.with_ms - found.without_ms, "ms"),
    ]


def run(*, quick: bool, folder: Path) -> str:
    """Measure; returns the table and where the JSON is."""
    costs = measure(quick=quick)
    return f"{table('tenants', costs)}\n\n{write(costs, folder, 'tenants')}"


if __name__ == "__main__":
    sys.exit(main("tenants", __doc__, run))

"""`python -m bench.scale`: a controller that starts in a cluster of 10,000 GPU pods on 1,000 nodes.

Everything is real except kubelets: pods are admitted by the webhook and stored with a node, nodes
are objects. The controller is stopped, the tenant's quota changed, and the controller started: when
the tenant's status answers to the change with the charge of all pods, its ledger has been rebuilt.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

from bench.cost import cpu_seconds, rss_mib
from bench.costs import Cost, main, table, write
from bench.cpu import cpu_percent
from bench.load import Generator, Load
from devcluster import Cluster
from devcluster.installation import Installation
from gpumem_operator import names
from gpumem_operator.kube.api import Api, Patch, connect
from gpumem_operator.kube.connection import connection_of
from gpumem_operator.kube.errors import NotFound
from gpumem_operator.kube.resources import NODES, SERVICE_ACCOUNTS, TENANTS

NAMESPACE = "bench-scale"
PODS_PER_NODE = 10
POD_BYTES = 8 * 2**30
IDLE_SECONDS = 20.0
_PERIOD_SECONDS = 10.0
"""Measured numbers are looked at so often: each window of this length has one look."""
_STILL_FALLING = 0.9
_CLIENTS = 16
_POLL_SECONDS = 0.05


def measure(*, quick: bool = False) -> list[Cost]:
    """What the leader takes for 10,000 pods (quick: 200)."""
    with Cluster.start() as cluster, Installation.start(cluster) as operator:
        return asyncio.run(_measure(cluster, operator, 20 if quick else 1000, quick=quick))


async def _measure(
    cluster: Cluster, operator: Installation, nodes: int, *, quick: bool
) -> list[Cost]:
    total = nodes * PODS_PER_NODE
    began = time.monotonic()
    async with connect(cluster.kubeconfig) as api:
        await _fill(api, cluster, nodes)
        await _until_charged(api, total, since_generation=1)
        filled = time.monotonic() - began
        operator.stop_controller()
        quota = {"spec": {"quota": {"limit": "2000Ti"}}}
        changed = await api.patch(TENANTS.path(NAMESPACE), quota, kind=Patch.MERGE)
        began = time.monotonic()
        operator.start_controller()
        (pid,) = operator.controller_pids
        await _until_charged(api, total, since_generation=changed["metadata"]["generation"])
        rebuilt, spent = time.monotonic() - began, cpu_seconds(pid)
    idle = cpu_percent(pid, 2) if quick else _cpu_at_rest(pid)
    where = f"{total:,} pods on {nodes:,} nodes"
    return [
        Cost(f"start until the ledger is rebuilt, {where}", rebuilt, "s", 10),
        Cost("CPU of that", spent, "s"),
        Cost("RSS", rss_mib(pid), "MiB", 400),
        Cost("CPU at rest, between two whole lists", idle, "% of a core", 5),
        Cost("not the operator's: time to make the cluster", filled, "s"),
    ]


def _cpu_at_rest(pid: int) -> float:
    """Percent of a core, once each period takes as much as the one before.

    When the ledger is whole, kopf still goes through its own list of the pods, and statuses follow.
    How long that takes is the machine's affair, so no fixed time is waited.
    """
    before, now = float("inf"), cpu_percent(pid, _PERIOD_SECONDS)
    while now < _STILL_FALLING * before:
        before, now = now, cpu_percent(pid, _PERIOD_SECONDS)
    return cpu_percent(pid, IDLE_SECONDS)


async def _fill(api: Api, cluster: Cluster, nodes: int) -> None:
    await api.create("/api/v1/namespaces", _object("v1", "Namespace", labels={"team": NAMESPACE}))
    quota = {"limit": "1000Ti", "wholeGPU": "80Gi", "onExceeded": "Warn"}
    selector = {"matchLabels": {"team": NAMESPACE}}
    tenant = _object(names.API_VERSION, names.TENANT_KIND)
    tenant["spec"] = {"namespaceSelector": selector, "quota": quota}
    await api.create(TENANTS.path(), tenant)
    turns = asyncio.Semaphore(_CLIENTS)

    async def node(name: str) -> None:
        async with turns:
            await api.create(NODES.path(), _object("v1", "Node", name=name))

    await asyncio.gather(*(node(_node(number)) for number in range(nodes)))
    await _until_there(api, SERVICE_ACCOUNTS.path("default", namespace=NAMESPACE))
    async with Generator(connection_of(cluster.kubeconfig)) as generator:

        async def pods(name: str) -> None:
            async with turns:
                load = Load(1, dry_run=False)
                await generator.run(load, _pod(name), namespace=NAMESPACE, count=PODS_PER_NODE)

        await asyncio.gather(*(pods(_node(number)) for number in range(nodes)))


def _node(number: int) -> str:
    return f"bench-{number}"


def _object(
    version: str, kind: str, *, name: str = NAMESPACE, labels: dict[str, str] | None = None
) -> dict[str, Any]:
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _pod(node: str) -> dict[str, Any]:
    limits = {names.GPU_RESOURCE: "1", names.MEMORY_RESOURCE: str(POD_BYTES)}
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    spec = {
        "nodeName": node,
        # No kubelet says that the node lives: its pods are to stay all the same.
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "bench-"},
        "spec": spec,
    }


async def _until_there(api: Api, path: str) -> None:
    while True:
        try:
            await api.get(path)
            return
        except NotFound:
            await asyncio.sleep(_POLL_SECONDS)


async def _until_charged(api: Api, pods: int, *, since_generation: int) -> None:
    """Until the tenant's status answers to this generation with the charge of so many pods."""
    while True:
        status = (await api.get(TENANTS.path(NAMESPACE))).get("status") or {}
        charged = status.get("chargedBytes") == pods * POD_BYTES
        if charged and status.get("observedGeneration", 0) >= since_generation:
            return
        await asyncio.sleep(_POLL_SECONDS)


def run(*, quick: bool, folder: Path) -> str:
    """Measure; returns the table and where the JSON is."""
    costs = measure(quick=quick)
    return f"{table('controller', costs)}\n\n{write(costs, folder, 'scale')}"


if __name__ == "__main__":
    sys.exit(main("scale", __doc__, run))

"""What admission costs: pods with and without a GPU, while the webhook is up, hung and stopped."""

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench.compare import Comparison, Plan, compare
from bench.cost import cpu_seconds, rss_mib
from bench.costs import Cost, main
from bench.load import Generator, Load
from bench.machine import describe
from bench.report import Report
from bench.shapes import SHAPES
from devcluster import Cluster
from devcluster.installation import Installation
from gpumem_operator import names
from gpumem_operator.kube.connection import connection_of
from gpumem_operator.webhook.surroundings import SETTLING_SECONDS

WITH: Final = "bench-with"
WITHOUT: Final = "bench-without"
"""The webhook's configuration leaves this namespace out."""
NO_POLICY: Final = "bench-no-policy"
"""Its pods go through the webhook, which asks the server each time and changes nothing."""

Say = Callable[[str], None]

UP: Final = (
    Plan("GPU pod", Load(1), block=100, cycles=10, target=2.1),
    Plan("GPU pod", Load(8), block=160, cycles=10, target=2.1),
    Plan("GPU pod", Load(32), block=160, cycles=10, target=2.3),
    Plan("GPU pod", Load(8, per_second=50), block=100, cycles=6, target=1.7),
    Plan("GPU pod", Load(8, dry_run=False), block=80, cycles=6),
    Plan("GPU pod, each with its own variables", Load(1), block=100, cycles=10),
    Plan("GPU pod of 40 containers", Load(1), block=30, cycles=6),
    Plan("CPU pod", Load(1), block=100, cycles=10, target=1.1),
    Plan("CPU pod", Load(8), block=160, cycles=6, target=1.1),
)
ASKS_SERVER: Final = Plan("GPU pod", Load(1), block=60, cycles=6, state="up, no policy or tenant")
BACK_TO_BACK: Final = Load(1)
STEADY: Final = Load(8, per_second=50)
HUNG, STOPPED = (
    tuple(
        Plan("CPU pod", Load(clients), block=80, cycles=6, state=state, target=1.1)
        for clients in (1, 8)
    )
    for state in ("hung", "stopped")
)


def shortened(plan: Plan) -> Plan:
    """The same with a few pods: shows that it runs, and nothing about speed."""
    return replace(plan, block=max(plan.load.clients, 4), cycles=2)


def run(*, quick: bool, folder: Path) -> str:
    """Measure on a control plane of its own; returns the tables and where the JSON is."""
    with Cluster.start() as cluster, Installation.start(cluster, roles=["webhook"]) as operator:
        report = measure(cluster, operator, quick=quick, say=_say)
    return f"{report.as_markdown()}\n\n{report.write(folder)}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure(cluster: Cluster, installation: Installation, *, quick: bool, say: Say) -> Report:
    """Measure everything on an installation with one webhook, which is stopped at the end."""
    return asyncio.run(_Bench(cluster, installation, quick=quick, say=say).run())


class _Bench:
    def __init__(
        self, cluster: Cluster, installation: Installation, *, quick: bool, say: Say
    ) -> None:
        self._cluster = cluster
        self._installation = installation
        self._quick = quick
        self._say = say
        self._choose = random.Random()

    async def run(self) -> Report:
        machine = describe(self._cluster)
        self._prepare()
        await asyncio.sleep(SETTLING_SECONDS * 1.5)
        [pid] = self._installation.webhook_pids
        async with Generator(connection_of(self._cluster.kubeconfig)) as generator:
            found = await self._compare_all(generator, UP)
            costs = await self._costs(generator, pid)
            found += await self._compare_all(generator, [ASKS_SERVER], webhook=NO_POLICY)
            with _hung(pid):
                found += await self._compare_all(generator, HUNG)
            self._installation.stop_webhook()
            found += await self._compare_all(generator, STOPPED)
        return Report(machine, found, costs)

    def _prepare(self) -> None:
        for name in (WITH, WITHOUT, NO_POLICY):
            self._cluster.kubectl("create", "namespace", name)
        self._cluster.kubectl("label", "namespace", WITHOUT, f"{names.IGNORE_LABEL}=true")
        policy = {
            "apiVersion": names.API_VERSION,
            "kind": names.POLICY_KIND,
            "metadata": {"name": "bench", "namespace": WITH},
            "spec": {"limits": {"default": "8Gi"}},
        }
        self._cluster.kubectl("create", "-f", "-", input=json.dumps(policy))
        for name in (WITH, WITHOUT, NO_POLICY):
            what = ["--for=create", "serviceaccount/default", "-n", name, "--timeout=60s"]
            self._cluster.kubectl("wait", *what)

    async def _compare_all(
        self, generator: Generator, plans: Sequence[Plan], *, webhook: str = WITH
    ) -> list[Comparison]:
        return [
            await compare(
                generator,
                SHAPES[plan.shape](),
                shortened(plan) if self._quick else plan,
                namespaces={True: webhook, False: WITHOUT},
                choose=self._choose,
                say=self._say,
            )
            for plan in plans
        ]

    async def _costs(self, generator: Generator, pid: int) -> list[Cost]:
        count = 20 if self._quick else 1000
        costs = []
        for load, target in ((BACK_TO_BACK, 0.4), (STEADY, None)):
            before = cpu_seconds(pid)
            await generator.run(load, SHAPES["GPU pod"](), namespace=WITH, count=count)
            seconds = (cpu_seconds(pid) - before) * 1000 / count
            costs.append(Cost(f"CPU per 1,000 pods, {load.title}", seconds, "s", target))
        return [*costs, Cost("RSS after all of the above", rss_mib(pid), "MiB", 60)]


@contextmanager
def _hung(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


if __name__ == "__main__":
    sys.exit(main("admission", __doc__, run))

"""The process: what starts, in which order, and in which order it ends.

health endpoint -> first lists -> kopf's watches -> candidate -> leader's workers
and back: workers, lease released, health endpoint, kopf
"""

import asyncio
import gc
import os
import signal
import socket
import uuid
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Protocol

import kopf

from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.certificates import CertificateWorker
from gpumem_operator.controllers.enforcement import EnforcementWorker
from gpumem_operator.controllers.handlers import make_registry, make_settings
from gpumem_operator.controllers.incidents import IncidentWorker
from gpumem_operator.controllers.labels import LabelWorker
from gpumem_operator.controllers.node_enforcers import NodeEnforcerWorker
from gpumem_operator.controllers.nodes import NodeWorker
from gpumem_operator.controllers.options import ControllerOptions
from gpumem_operator.controllers.queue import QueueWorker
from gpumem_operator.controllers.reporting import ReportIntake
from gpumem_operator.controllers.scaling import ScalingWorker
from gpumem_operator.controllers.sealing import SealKey
from gpumem_operator.controllers.statuses import StatusWorker
from gpumem_operator.controllers.tenant_views import tenant_views
from gpumem_operator.controllers.usage import UsageBoard, UsageWorker
from gpumem_operator.controllers.worker import attempt, utc_now
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.enforcement.order_book import OrderBook
from gpumem_operator.intake.exchange import Exchange, Wanted
from gpumem_operator.kube.api import Api, connect
from gpumem_operator.kube.lease import Leadership
from gpumem_operator.metrics.controller import LEADER
from gpumem_operator.metrics.scaling import ScalingCollector
from gpumem_operator.metrics.server import serve
from gpumem_operator.metrics.tenants import TenantsCollector
from gpumem_operator.metrics.usage import UsageCollector, showing
from gpumem_operator.reports.pictures import Sender
from gpumem_operator.reports.report import Acknowledgement
from gpumem_operator.reports.snapshot import Snapshot


class Worker(Protocol):
    """A part of the leader's work that never ends by itself."""

    async def run(self) -> None: ...


class Controller:
    """One controller process; `run` ends when `stop` is set, or with what failed.

    `ending` is called whenever parts are told to end, before they are waited for.
    """

    def __init__(
        self, options: ControllerOptions, *, ending: Callable[[], None] = lambda: None
    ) -> None:
        self.options = options
        self._ending = ending
        self.cache = Cache(options.values, own_namespace=options.namespace)
        self._seal_key = SealKey(namespace=options.namespace, name=options.seal_secret)
        self.stop = asyncio.Event()
        self.health_port = 0
        """Where the health endpoint listens, once it does."""
        self._leadership: Leadership | None = None
        self._watching = asyncio.Event()

    def readiness(self) -> str | None:
        """None, or why this replica could not take over."""
        if not self.cache.complete:
            return "policies, tenants, namespaces, nodes and pods have not been listed yet"
        if not self._watching.is_set() or self._leadership is None:
            return "watches have not begun yet"
        return self._leadership.stalled

    def lapsed(self) -> str | None:
        """None, or why what this process knew as the leader may not be told any more."""
        return None if self._leadership is None else self._leadership.lapsed

    async def run(self) -> None:
        """Raises LeadershipLost, or the error that ended one of the parts."""
        _stop_on_signals(self.stop)
        async with AsyncExitStack() as stack:
            api = await stack.enter_async_context(connect(self.options.kubeconfig))
            # All connections of the other may hang: somebody's webhooks do.
            lease_api = await stack.enter_async_context(connect(self.options.kubeconfig))
            kopf_stop = asyncio.Event()
            stack.callback(kopf_stop.set)
            health = serve(
                self.options.bind,
                self.options.health_port,
                ready=self.readiness,
                lapsed=self.lapsed,
            )
            self.health_port = await stack.enter_async_context(health)
            await self._until_stopped(self._first_lists(api))
            # What was listed stays: looking through it for garbage took a third of each look at
            # the use of 10,000 pods. Once only, as what is frozen is never looked at again.
            gc.collect()
            gc.freeze()
            if not self.stop.is_set():
                await self._work(api, lease_api, kopf_stop)

    async def _work(self, api: Api, lease_api: Api, kopf_stop: asyncio.Event) -> None:
        watches = await self._start_kopf(kopf_stop)
        leadership = self._leadership = Leadership(
            lease_api,
            namespace=self.options.namespace,
            name=self.options.lease,
            identity=f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}",
            timings=self.options.timings,
            ending=self._ending,
        )
        try:
            await self._until_stopped(
                leadership.run(lambda: self._lead(Writer(api, leadership))),
                self._list_now_and_then(api),
                _watch_over(watches),
                ending=self._ending,
            )
        finally:
            kopf_stop.set()
            await asyncio.wait({watches})

    async def _first_lists(self, api: Api) -> None:
        """Until everything was read once: the kinds may still be on their way into the cluster."""
        while not self.cache.complete:
            with attempt("cache", "first lists"):
                self.cache.seal = await self._seal_key.seal(api)
                await self.cache.list_all(api)
            if not self.cache.complete:
                await asyncio.sleep(self.options.periods.retry)

    async def _list_now_and_then(self, api: Api) -> None:
        while True:
            await asyncio.sleep(self.options.periods.lists)
            with attempt("cache", "key of the seals"):
                await self._seal_key.seal(api)
            with attempt("cache", "lists"):
                await self.cache.list_all(api)

    async def _start_kopf(self, stop: asyncio.Event) -> asyncio.Task[None]:
        existing = asyncio.all_tasks()
        identity: Any = socket.gethostname()  # kopf would ask for its user, who has no name.
        tasks = await kopf.spawn_tasks(
            registry=make_registry(self.cache, self.options.kubeconfig),
            settings=make_settings(),
            standalone=True,
            clusterwide=True,
            identity=identity,
            stop_flag=stop,
            ready_flag=self._watching,
        )
        # kopf has taken the signals. At its end it waits for every task that is younger than
        # itself, so it has to be the last to end: signals are ours again.
        _stop_on_signals(self.stop)
        return asyncio.create_task(kopf.run_tasks(tasks, ignored=existing), name="kopf")

    async def _lead(self, writer: Writer) -> None:
        values, periods = self.options.values, self.options.periods
        board = UsageBoard(self.cache, values=values)
        queue = QueueWorker(self.cache, writer, values=values, periods=periods)
        statuses = StatusWorker(
            self.cache, writer, values=values, periods=periods, epoch=lambda: queue.epoch
        )
        queue.counted = statuses.look_at_everything
        incidents = IncidentWorker(writer, self.cache)
        orders = OrderBook()
        enforcement = EnforcementWorker(self.cache, writer, board=board, orders=orders)

        def tell(snapshot: Snapshot) -> None:
            statuses.look_at_use(snapshot)
            incidents.look(snapshot)
            enforcement.look(snapshot)

        LEADER.set(1)
        try:
            scaling = ScalingCollector(lambda: _statuses(self.cache))
            tenants = TenantsCollector(lambda: tenant_views(self.cache, values))
            usage = UsageCollector(board.snapshot)
            with showing(usage), showing(scaling), showing(tenants):
                await self._run_workers(
                    writer,
                    LabelWorker(self.cache, writer, values=values, periods=periods),
                    NodeWorker(self.cache, writer, values=values, periods=periods),
                    statuses,
                    queue,
                    *self._node_enforcers(board, writer, statuses),
                    incidents,
                    ScalingWorker(self.cache, writer, snapshot=board.snapshot, periods=periods),
                    enforcement,
                    UsageWorker(board, changed=tell, periods=periods),
                    board=board,
                    exchange=_exchange(orders, enforcement.hear),
                )
        finally:
            LEADER.set(0)

    def _node_enforcers(
        self, board: UsageBoard, writer: Writer, statuses: StatusWorker
    ) -> list[Worker]:
        options = self.options
        if not options.nodes_config_map:
            return []
        return [
            NodeEnforcerWorker(
                self.cache,
                writer,
                board=board,
                namespace=options.namespace,
                config_map=options.nodes_config_map,
                periods=options.periods,
                counted=statuses.look_at_nodes,
            )
        ]

    async def _run_workers(
        self, writer: Writer, *workers: Worker, board: UsageBoard, exchange: Exchange
    ) -> None:
        async with asyncio.TaskGroup() as group:
            for worker in workers:
                group.create_task(worker.run())
            if self.options.certificates is not None:
                certificates = CertificateWorker(
                    writer,
                    options=self.options.certificates,
                    namespace=self.options.namespace,
                    periods=self.options.periods,
                )
                group.create_task(certificates.run())
            if self.options.reports is not None:
                intake = ReportIntake(
                    board,
                    writer,
                    exchange=exchange,
                    options=self.options,
                    reports=self.options.reports,
                    lapsed=self.lapsed,
                )
                group.create_task(intake.run())

    async def _until_stopped(
        self, *parts: Coroutine[Any, Any, None], ending: Callable[[], None] = lambda: None
    ) -> None:
        """Run the parts until one ends or `stop` is set; then end the others, in their order.

        Raises what ended a part. A part that ends by itself ends the others too.
        """
        tasks = [asyncio.create_task(part) for part in parts]
        stop = asyncio.create_task(self.stop.wait())
        try:
            await asyncio.wait({stop, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending()
            ended = [task for task in tasks if task.done()]
            for task in (*tasks, stop):
                task.cancel()
                await asyncio.wait({task})
        for task in ended:
            task.result()


def _statuses(cache: Cache) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Of all policies, by namespace and name."""
    for (namespace, name), row in cache.policies.rows():
        yield namespace, name, row.value.status


def _exchange(orders: OrderBook, heard: Callable[[Sender], bool]) -> Exchange:
    """How the endpoint for reports hands answers in and orders out; `heard` learns who came."""

    def exchange(sender: Sender, said: Sequence[Acknowledgement]) -> Wanted:
        orders.heed(sender, said, utc_now())
        urgent = heard(sender)
        return Wanted(orders.of(sender), urgent)

    return exchange


async def _watch_over(watches: asyncio.Task[None]) -> None:
    """End with what ended kopf; its end is not hurried when this is cancelled."""
    await asyncio.shield(watches)
    raise RuntimeError("kopf's watches ended by themselves")


def _stop_on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

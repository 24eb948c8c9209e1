"""Nodes with NVIDIA GPUs offer the memory resource, so that the scheduler counts GPU memory."""

import asyncio
import logging

from gpumem_operator.api.quantity import format_bytes
from gpumem_operator.api.values import Values
from gpumem_operator.controllers.about import about
from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.inbox import Inbox
from gpumem_operator.controllers.options import Periods
from gpumem_operator.controllers.worker import attempt, timestamp, utc_now
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.errors import NotFound
from gpumem_operator.kube.resources import NODES
from gpumem_operator.ledger.node_memory import (
    FIELD_MANAGER,
    Unreadable,
    status_patch,
    wanted_offer,
)
from gpumem_operator.metrics.controller import RECONCILE_SECONDS

_LOG = logging.getLogger(__name__)


class NodeWorker:
    """Keeps what nodes offer right while this process leads."""

    def __init__(self, cache: Cache, writer: Writer, *, values: Values, periods: Periods) -> None:
        self._cache = cache
        self._writer = writer
        self._resource = values.memory_resource
        self._periods = periods
        self._changed: Inbox[str] = Inbox()
        self._told: dict[str, tuple[str, str]] = {}
        """By node: uid and reason of the last complaint, which is made once."""
        cache.nodes.listeners.append(lambda key, _, __: self._changed.add(key[1]))

    async def run(self) -> None:
        self._changed.add(*(key[1] for key, _ in self._cache.nodes.rows()))
        while True:
            names = await self._changed.take()
            failed = set()
            with RECONCILE_SECONDS.labels("nodes").time():
                for name in sorted(names):
                    with attempt("nodes", f"node {name}") as outcome:
                        await self._reconcile(name)
                    if outcome.failed:
                        failed.add(name)
            if failed:
                await asyncio.sleep(self._periods.retry)
                self._changed.add(*failed)

    async def _reconcile(self, name: str) -> None:
        row = self._cache.nodes.get(("", name))
        if row is None:
            self._told.pop(name, None)
            return
        offer = wanted_offer(row.value["metadata"]["labels"])
        if isinstance(offer, Unreadable):
            await self._complain(name, row.uid, offer.reason)
            return
        self._told.pop(name, None)
        status = status_patch(row.value, offer, self._resource)
        if status is None:
            return
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}
        try:
            await self._writer.apply(
                NODES.path(name, subresource="status"), body, manager=FIELD_MANAGER
            )
        except NotFound:
            return
        shown = "no" if offer.bytes is None else format_bytes(offer.bytes)
        _LOG.info("node %s offers %s %s", name, shown, self._resource)

    async def _complain(self, name: str, uid: str, reason: str) -> None:
        if self._told.get(name) == (uid, reason):
            return
        message = f"{reason}: what the node offers of {self._resource} is left as it is"
        _LOG.warning("node %s: %s", name, message)
        await self._writer.warn(
            about("Node", name=name, uid=uid),
            reason="GPULabelsUnreadable",
            message=message,
            now=timestamp(utc_now()),
        )
        self._told[name] = (uid, reason)

"""Labels of nodes that can hold limits, and the ConfigMap in which admission reads it."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.options import Periods
from gpumem_operator.controllers.usage import UsageBoard
from gpumem_operator.controllers.worker import attempt
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.errors import NotFound
from gpumem_operator.kube.resources import CONFIG_MAPS, NODES
from gpumem_operator.ledger.node_enforcers import (
    FIELD_MANAGER,
    SUMMARY_KEY,
    AbleNodes,
    able_nodes,
    labels_patch,
    summary,
)
from gpumem_operator.metrics.controller import RECONCILE_SECONDS

_LOG = logging.getLogger(__name__)


class NodeEnforcerWorker:
    """Looks at all nodes every few seconds while this process leads; writes what differs."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        *,
        board: UsageBoard,
        namespace: str,
        config_map: str,
        periods: Periods,
        counted: Callable[[AbleNodes], None],
    ) -> None:
        """`counted` is told at each look how many nodes can hold limits."""
        self._cache = cache
        self._writer = writer
        self._board = board
        self._path = CONFIG_MAPS.path(config_map, namespace=namespace)
        self._periods = periods
        self._counted = counted

    async def run(self) -> None:
        while True:
            with RECONCILE_SECONDS.labels("node enforcers").time():
                await self.reconcile()
            await asyncio.sleep(self._periods.usage)

    async def reconcile(self) -> None:
        """One look."""
        nodes = {key[1]: row.value for key, row in self._cache.nodes.rows()}
        self._counted(able_nodes(nodes.values()))
        able = self._board.driver_limits()
        for name, node in sorted(nodes.items()):
            labels = labels_patch(node, able.get(name))
            if labels is not None:
                with attempt("node enforcers", f"node {name}"):
                    await self._label(name, labels)
        with attempt("node enforcers", "summary for admission"):
            await self._summarize(summary(nodes.values()))

    async def _label(self, name: str, labels: Mapping[str, str]) -> None:
        metadata = {"name": name, "labels": dict(labels)}
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
        try:
            await self._writer.apply(NODES.path(name), body, manager=FIELD_MANAGER)
        except NotFound:
            return
        _LOG.info("node %s labelled %s", name, ", ".join(sorted(labels)) or "with nothing of ours")

    async def _summarize(self, text: str) -> None:
        # Read at each look: others may have emptied it, or made it anew.
        found = await self._writer.api.get(self._path)
        if text != (found.get("data") or {}).get(SUMMARY_KEY):
            await self._writer.merge(self._path, {"data": {SUMMARY_KEY: text}})

"""The pod of the leader carries a label, and the Service for reports selects by it.

A pod whose process lost the lease may keep the label for a while: whoever leads takes it away.
"""

import asyncio
import logging
from typing import Final

from gpumem_operator import names
from gpumem_operator.controllers.options import Periods
from gpumem_operator.controllers.worker import attempt
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.errors import NotFound
from gpumem_operator.kube.resources import PODS

_LOG = logging.getLogger(__name__)
_LABELLED: Final = f"{names.LEADER_LABEL}=true"


class LeaderLabelWorker:
    """Keeps the label on this process's pod, and on no other."""

    def __init__(self, writer: Writer, *, namespace: str, pod: str, periods: Periods) -> None:
        self._writer = writer
        self._namespace = namespace
        self._pod = pod
        self._periods = periods

    async def run(self, listening: asyncio.Event) -> None:
        """From when reports are taken in here."""
        await listening.wait()
        while True:
            with attempt("report service", "label of the leader's pod"):
                await self.reconcile()
            await asyncio.sleep(self._periods.usage)

    async def reconcile(self) -> None:
        """One look. Others lose the label first: reports go nowhere rather than to them."""
        query = {"labelSelector": _LABELLED}
        found = await self._writer.api.get(PODS.path(namespace=self._namespace), query=query)
        labelled = {pod["metadata"]["name"] for pod in found.get("items") or ()}
        for name in sorted(labelled - {self._pod}):
            try:
                await self._label(name, None)
            except NotFound:
                continue
            _LOG.info("pod %s no longer takes reports in", name)
        if self._pod not in labelled:
            await self._label(self._pod, "true")
            _LOG.info("pod %s takes reports in", self._pod)

    async def _label(self, pod: str, value: str | None) -> None:
        body = {"metadata": {"labels": {names.LEADER_LABEL: value}}}
        await self._writer.merge(PODS.path(pod, namespace=self._namespace), body)

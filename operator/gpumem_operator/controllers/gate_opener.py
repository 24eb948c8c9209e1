"""Opens gates beside the turns that decide about them.

A patch of a pod waits for whatever webhooks others have put before it: where those of some
namespaces answer late or never, pods of all others go on meanwhile.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable

from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.gate_places import Places
from gpumem_operator.controllers.gates import open_gate
from gpumem_operator.controllers.pauses import Pauses
from gpumem_operator.controllers.table import Key
from gpumem_operator.controllers.worker import attempt
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.ledger.groups import WaitingPod


class GateOpener:
    """Of one leader."""

    def __init__(self, cache: Cache, writer: Writer, pauses: Pauses) -> None:
        self._cache = cache
        self._writer = writer
        self._pauses = pauses
        self._waiting: defaultdict[str, deque[WaitingPod]] = defaultdict(deque)
        """By namespace, what the latest turn let through."""
        self._places = Places()
        self._busy: set[str] = set()
        """Uids of pods whose patch is on its way."""
        self._changed = asyncio.Event()
        """Something waits, or has ended."""
        cache.namespaces.listeners.append(self._namespace_changed)

    def _namespace_changed(self, key: Key, _: object, new: object | None) -> None:
        if new is None:
            self._places.forget(key[1])

    def open(self, pods: Iterable[WaitingPod]) -> None:
        """All pods that may go on now, in place of those of the turn before."""
        self._waiting.clear()
        pods = tuple(pods)
        self._pauses.keep(pod.uid for pod in pods)
        for pod in pods:
            if pod.uid not in self._busy and self._pauses.is_over(pod.uid):
                self._waiting[pod.namespace].append(pod)
        self._changed.set()

    async def run(self) -> None:
        """Raises what no attempt takes: LeadershipLost."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._changed.wait()
                self._changed.clear()
                while (namespace := self._places.next(self._waiting.keys())) is not None:
                    group.create_task(self._open(self._take(namespace)))

    def _take(self, namespace: str) -> WaitingPod:
        waiting = self._waiting[namespace]
        pod = waiting.popleft()
        if not waiting:
            del self._waiting[namespace]
        self._places.begin(namespace)
        self._busy.add(pod.uid)
        return pod

    async def _open(self, pod: WaitingPod) -> None:
        answered: bool | None = None
        try:
            with attempt("queue", f"gate of pod {pod.title}") as outcome:
                # Of a pod that is gone, the server answers before it asks anybody's webhook.
                answered = await open_gate(self._cache, self._writer, pod) or None
            if outcome.failed and not outcome.overtaken:
                answered = False
        finally:
            self._busy.discard(pod.uid)
            self._places.end(pod.namespace, answered=answered)
            self._changed.set()
        if outcome.overtaken:
            self._pauses.skip()
        elif outcome.failed:
            self._pauses.begin(pod.uid)

"""Opens gates beside the turns that decide about them.

A patch of a pod waits for whatever webhooks others have put before it: where one namespace's answer
late or never, pods of all others go on meanwhile. Such a namespace gets one patch at a time until
one goes through: what hangs takes a place at the API server, too.
"""

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from typing import Final

from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.gates import open_gate
from gpumem_operator.controllers.pauses import Pauses
from gpumem_operator.controllers.worker import attempt
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.ledger.groups import WaitingPod

_AT_ONCE: Final = 16
"""Gates of one namespace that are being opened at the same time."""


class GateOpener:
    """Of one leader."""

    def __init__(self, cache: Cache, writer: Writer, pauses: Pauses) -> None:
        self._cache = cache
        self._writer = writer
        self._pauses = pauses
        self._waiting: defaultdict[str, deque[WaitingPod]] = defaultdict(deque)
        """By namespace, what the latest turn let through."""
        self._at_work: Counter[str] = Counter()
        """By namespace."""
        self._failing: set[str] = set()
        """Namespaces whose last answer was none, or a refusal."""
        self._busy: set[str] = set()
        """Uids of pods whose patch is on its way."""
        self._namespaces: asyncio.Queue[str] = asyncio.Queue()

    def open(self, pods: Iterable[WaitingPod]) -> None:
        """All pods that may go on now, in place of those of the turn before."""
        self._waiting.clear()
        pods = tuple(pods)
        self._pauses.keep(pod.uid for pod in pods)
        self._failing &= {pod.namespace for pod in pods}
        for pod in pods:
            if pod.uid not in self._busy and self._pauses.is_over(pod.uid):
                self._waiting[pod.namespace].append(pod)
        for namespace, waiting in self._waiting.items():
            for _ in range(min(len(waiting), self._places(namespace) - self._at_work[namespace])):
                self._at_work[namespace] += 1
                self._namespaces.put_nowait(namespace)

    async def run(self) -> None:
        """Raises what no attempt takes: LeadershipLost."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._work(await self._namespaces.get()))

    async def _work(self, namespace: str) -> None:
        try:
            while waiting := self._waiting.get(namespace):
                if self._at_work[namespace] > self._places(namespace):
                    return
                await self._open(waiting.popleft())
        finally:
            self._at_work[namespace] -= 1
            if not self._at_work[namespace]:
                del self._at_work[namespace]

    async def _open(self, pod: WaitingPod) -> None:
        self._busy.add(pod.uid)
        try:
            with attempt("queue", f"gate of pod {pod.title}") as outcome:
                await open_gate(self._cache, self._writer, pod)
        finally:
            self._busy.discard(pod.uid)
        if outcome.overtaken:
            self._pauses.skip()
        elif outcome.failed:
            self._failing.add(pod.namespace)
            self._pauses.begin(pod.uid)
        else:
            self._failing.discard(pod.namespace)

    def _places(self, namespace: str) -> int:
        return 1 if namespace in self._failing else _AT_ONCE

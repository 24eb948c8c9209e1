"""Many clients that create pods at once, and try again what was refused."""

from __future__ import annotations

import asyncio
import threading
import time
from abc import abstractmethod
from pathlib import Path
from typing import Self

from endtoend.bystander import Bystander
from endtoend.team import pod
from gpumem_operator.kube.api import Api, connect
from gpumem_operator.kube.errors import ApiError, Conflict, NotFound
from gpumem_operator.kube.resources import PODS
from patience import PATIENCE_SECONDS

CLIENTS = 50
PODS_IN_ALL = 500
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 8.0
"""Between two tries of a create that was refused: doubled each time, as controllers do. Clients
that never let up keep webhooks so busy with calls that nobody waits for that none is in time."""


class _Beside:
    """Works at the API in a thread of its own; what went wrong is raised where the test waits."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._over = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        try:
            asyncio.run(self._work())
        except BaseException as error:
            self._failed = error

    @abstractmethod
    async def _work(self) -> None:
        """Until it is done, or over."""


class Crowd(_Beside):
    """Each client creates its share of pods of 1Gi, one after the other, and tries again until the
    end of the `with`."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        super().__init__(kubeconfig)
        self._path = PODS.path(namespace=namespace)
        self.created = 0
        self.retries = 0
        self.seconds = 0.0
        """From the first create to the last answer."""

    async def _work(self) -> None:
        begun = time.monotonic()
        async with connect(self._kubeconfig) as api:
            shares = [range(client, PODS_IN_ALL, CLIENTS) for client in range(CLIENTS)]
            await asyncio.gather(*(self._create(api, share) for share in shares))
        self.seconds = time.monotonic() - begun

    async def _create(self, api: Api, numbers: range) -> None:
        for number in numbers:
            deadline = time.monotonic() + PATIENCE_SECONDS
            pause = FIRST_PAUSE_SECONDS * (1 + number % CLIENTS / CLIENTS)
            while not await self._created(api, f"p{number:03}"):
                if self._over.is_set() or time.monotonic() > deadline:
                    break
                self.retries += 1
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _created(self, api: Api, name: str) -> bool:
        limits = {"nvidia.com/gpu": 1, "nvidia.com/memory": "1Gi"}
        try:
            await api.create(self._path, pod(name, limits=limits), seconds=PATIENCE_SECONDS)
        except Conflict as error:
            if "already exists" not in str(error):
                return False
        except ApiError as error:
            # A machine at work may keep a webhook from answering in time.
            if "admission webhook" not in str(error) and "calling webhook" not in str(error):
                raise
            return False
        self.created += 1
        return True


class Ending(_Beside):
    """Ends pods that run while there are more than `above`, so that there is always something to
    let through, and always close to the quota."""

    def __init__(self, kubeconfig: Path, namespace: str, *, seen: Bystander, above: int) -> None:
        super().__init__(kubeconfig)
        self._namespace = namespace
        self._seen = seen
        self._above = above
        self.ended = 0

    async def _work(self) -> None:
        async with connect(self._kubeconfig) as api:
            while not self._over.is_set():
                names = [name for name in self._seen.running() if name != "first"]
                for name in names[: max(min(len(names) - self._above, 5), 0)]:
                    await self._end(api, name)
                await asyncio.sleep(0.2)

    async def _end(self, api: Api, name: str) -> None:
        path = PODS.path(name, namespace=self._namespace)
        try:
            query = {"gracePeriodSeconds": "0"}
            await api.request("DELETE", path, query=query, seconds=PATIENCE_SECONDS)
        except NotFound:
            return
        self.ended += 1

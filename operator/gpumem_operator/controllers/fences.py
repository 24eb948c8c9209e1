"""Fences pods before room that was kept for them is given away: nobody who read them before can
open their gates then."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final

from gpumem_operator.controllers.cache import Cache
from gpumem_operator.controllers.gates import fence
from gpumem_operator.controllers.pauses import Pauses
from gpumem_operator.controllers.writer import Writer
from gpumem_operator.kube.errors import ApiError, Conflict
from gpumem_operator.ledger import epoch as epochs
from gpumem_operator.ledger.groups import WaitingPod

_LOG = logging.getLogger(__name__)
_SECONDS: Final = 4.0
"""A turn waits no longer: webhooks of others may be slow to answer for a pod."""


class Fences:
    """Of one leader."""

    def __init__(self, cache: Cache, writer: Writer, pauses: Pauses) -> None:
        self._cache = cache
        self._writer = writer
        self._pauses = pauses

    def keep(self, pods: Iterable[WaitingPod]) -> None:
        """Forget all others."""
        self._pauses.keep(pod.uid for pod in pods)

    async def put(self, pods: Sequence[WaitingPod], *, epoch: int) -> frozenset[str]:
        """Uids of those that have to keep their room, because they could not be fenced in time.

        Raises Conflict where one changed.
        """
        due = [pod for pod in pods if self._pauses.is_over(pod.uid)]
        patches = (self._is_fenced(pod, epoch) for pod in due)
        # Where one raises, the others end first: none may be on its way in the next turn.
        done = await asyncio.gather(*patches, return_exceptions=True)
        for one in done:
            if isinstance(one, BaseException):
                raise one
        fenced = {pod.uid for pod, one in zip(due, done, strict=True) if one}
        return frozenset(pod.uid for pod in pods if pod.uid not in fenced)

    async def _is_fenced(self, pod: WaitingPod, epoch: int) -> bool:
        mark = epochs.fence(epoch, pod.version)
        try:
            async with asyncio.timeout(_SECONDS):
                await fence(self._cache, self._writer, pod, mark)
        except Conflict:
            raise
        except (ApiError, TimeoutError) as error:
            pause = self._pauses.begin(pod.uid)
            _LOG.warning(
                "pod %s keeps its room: it could not be fenced, and is tried again in %.0f s: %s",
                pod.title, pause, error or f"no answer within {_SECONDS:.0f} s",
            )  # fmt: skip
            return False
        return True

"""The key that declarations are sealed with, from a Secret that the controller fills."""

import asyncio
import base64
import logging
from collections.abc import Callable, Mapping

from gpumem_operator import names
from gpumem_operator.api.seal import Seal
from gpumem_operator.webhook.secret import FilledSecret

logger = logging.getLogger(__name__)


class SealCopy(FilledSecret):
    """Gives each readable version of the Secret to `use`; the last good key is kept."""

    kept = "key is used"

    def __init__(self, use: Callable[[Seal], None], *, origin: str) -> None:
        super().__init__(origin)
        self._use = use
        self.loaded = asyncio.Event()
        """Whether there was a key."""

    def take(self, data: Mapping[str, str]) -> None:
        try:
            seal = Seal(base64.b64decode(data.get(names.SEAL_KEY) or ""))
        except ValueError as error:
            logger.error("%s can not be used: %s", self._origin, error)
            return
        self._use(seal)
        self.loaded.set()

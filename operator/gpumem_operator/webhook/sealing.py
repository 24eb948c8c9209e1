"""The key that declarations are sealed with, from a Secret that the controller fills."""

import asyncio
import base64
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpumem_operator import names
from gpumem_operator.api.seal import Seal

logger = logging.getLogger(__name__)


class SealCopy:
    """Gives each readable version of the Secret to `use`; the last good key is kept."""

    def __init__(self, use: Callable[[Seal], None], *, origin: str) -> None:
        self._use = use
        self._origin = origin
        self.loaded = asyncio.Event()
        """Whether there was a key."""

    def replace(self, objects: Sequence[Mapping[str, Any]]) -> None:
        if not objects:
            logger.warning("%s does not exist, the webhook waits for it", self._origin)
        for raw in objects:
            self.put(raw)

    def put(self, raw: Mapping[str, Any]) -> None:
        encoded = (raw.get("data") or {}).get(names.SEAL_KEY)
        if not encoded:
            # As the chart makes it: at the very first start the controller has yet to fill it.
            logger.info("%s is empty yet, the webhook waits for it", self._origin)
            return
        try:
            seal = Seal(base64.b64decode(encoded))
        except ValueError as error:
            logger.error("%s can not be used: %s", self._origin, error)
            return
        self._use(seal)
        self.loaded.set()

    def drop(self, raw: Mapping[str, Any]) -> None:  # noqa: ARG002 (part of the protocol)
        logger.warning("%s was deleted, its last key is used on", self._origin)

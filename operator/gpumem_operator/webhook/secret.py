"""One Secret that the chart makes empty and the controller fills, as the webhook waits for it."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

logger = logging.getLogger(__name__)


class FilledSecret(ABC):
    """The copy of a Reflector of this one Secret: what is in it is taken, the last one is kept."""

    kept: ClassVar[str]
    """What becomes of the last one where the Secret is deleted: `key is used`."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        """For people: `Secret gpumem-system/webhook-cert`."""

    @abstractmethod
    def take(self, data: Mapping[str, str]) -> None:
        """Use what is in it, in base64 by key; there is something."""

    def replace(self, objects: Sequence[Mapping[str, Any]]) -> None:
        if not objects:
            logger.warning("%s does not exist yet, the webhook waits for it", self._origin)
        for raw in objects:
            self.put(raw)

    def put(self, raw: Mapping[str, Any]) -> None:
        if data := raw.get("data"):
            self.take(data)
        else:
            # As the chart makes it: at the very first start the controller has yet to fill it.
            logger.info("%s is empty yet, the webhook waits for it", self._origin)

    def drop(self, raw: Mapping[str, Any]) -> None:  # noqa: ARG002 (part of the protocol)
        logger.warning("%s was deleted, its last %s on", self._origin, self.kept)
